// SPDX-License-Identifier: Apache-2.0
// Another backend's table, for those that pretend to be one.
#pragma once

#include <dlfcn.h>

#include "harness/backends/backend.h"

/// Null where it cannot be loaded.
inline const TuttiBackend* load_backend(const char* path) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  void* const entry = library == nullptr ? nullptr : dlsym(library, TUTTI_BACKEND_SYMBOL);
  return entry == nullptr ? nullptr : reinterpret_cast<TuttiBackendEntry>(entry)();
}

/// The honest table under another name, for what is changed in it. Without an honest table, a table of no ABI, which is
/// refused.
inline TuttiBackend pretending(const TuttiBackend* honest, const char* name) {
  TuttiBackend backend{};
  if (honest == nullptr) return backend;
  backend = *honest;
  backend.name = name;
  return backend;
}
