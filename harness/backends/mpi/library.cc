// SPDX-License-Identifier: Apache-2.0
// MPI has no question for "what carries the messages". Open MPI removes the control variables of components that it
// does not use. So the ones that are left after MPI_Init name those in use. MPICH says its device in the version text.
#include "harness/backends/mpi/library.h"

#include <cctype>
#include <sstream>
#include <string>
#include <vector>

#include <mpi.h>

namespace tutti::backend_mpi {
namespace {

/// Index of an Open MPI control variable, or -1: the component is not in use.
int variable_index(const char* name) {
  int index = -1;
  return MPI_T_cvar_get_index(name, &index) == MPI_SUCCESS ? index : -1;
}

/// The value of an integer variable; by its name where the variable is an enumeration.
std::string variable_text(const char* name) {
  const int index = variable_index(name);
  if (index < 0) return {};
  int verbosity = 0;
  int binding = 0;
  int scope = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_T_enum enumeration = MPI_T_ENUM_NULL;
  if (MPI_T_cvar_get_info(index, nullptr, nullptr, &verbosity, &type, &enumeration, nullptr, nullptr, &binding,
                          &scope) != MPI_SUCCESS ||
      type != MPI_INT) {
    return {};
  }
  MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
  int elements = 0;
  if (MPI_T_cvar_handle_alloc(index, nullptr, &handle, &elements) != MPI_SUCCESS) return {};
  int value = 0;
  const bool is_read = elements == 1 && MPI_T_cvar_read(handle, &value) == MPI_SUCCESS;
  MPI_T_cvar_handle_free(&handle);
  if (!is_read) return {};
  if (enumeration == MPI_T_ENUM_NULL) return std::to_string(value);
  int items = 0;
  char enumeration_name[256];
  int length = sizeof(enumeration_name);
  MPI_T_enum_get_info(enumeration, &items, enumeration_name, &length);
  for (int item = 0; item < items; ++item) {
    int item_value = 0;
    char item_name[256];
    int item_length = sizeof(item_name);
    if (MPI_T_enum_get_item(enumeration, item, &item_value, item_name, &item_length) != MPI_SUCCESS) continue;
    if (item_value == value) return item_name;
  }
  return std::to_string(value);
}

std::string join(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ",") + name;
  return text;
}

std::string open_mpi_transport() {
  std::string layer;
  for (const char* const name : {"ucx", "cm", "ob1"}) {
    if (variable_index((std::string("pml_") + name + "_priority").c_str()) < 0) continue;
    layer = name;
    break;
  }
  if (layer != "ob1") return layer;
  std::vector<std::string> below;
  for (const char* const name : {"self", "vader", "sm", "tcp", "openib", "ofi", "uct"}) {
    if (variable_index((std::string("btl_") + name + "_eager_limit").c_str()) >= 0) below.emplace_back(name);
  }
  return below.empty() ? layer : layer + ":" + join(below);
}

std::string version_text() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  if (MPI_Get_library_version(text, &length) != MPI_SUCCESS) return {};
  return std::string(text, static_cast<std::size_t>(length));
}

/// What follows `label` and blanks, up to a blank, a comma or the end of the line.
std::string word_after(const std::string& text, const std::string& label) {
  std::size_t start = text.find(label);
  if (start == std::string::npos) return {};
  start += label.size();
  while (start < text.size() && std::isspace(static_cast<unsigned char>(text[start])) != 0) ++start;
  const std::size_t end = text.find_first_of(" ,\t\n", start);
  return text.substr(start, end == std::string::npos ? end : end - start);
}

}  // namespace

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += static_cast<unsigned char>(c) < 0x20U ? ' ' : c;
  }
  return result;
}

Library library_identity() {
  const std::string text = version_text();
  if (text.starts_with("Open MPI")) return {"Open MPI", word_after(text, "Open MPI v"), "", ""};
  if (text.find("MPICH Version:") != std::string::npos) return {"MPICH", word_after(text, "MPICH Version:"), "", ""};
  if (text.starts_with("Intel(R) MPI")) return {"Intel MPI", word_after(text, "Intel(R) MPI Library"), "", ""};
  return {text.substr(0, text.find('\n')), "", "", ""};
}

Library library_in_use() {
  Library library = library_identity();
  if (library.name == "MPICH") library.transport = word_after(version_text(), "MPICH Device:");
  if (library.name != "Open MPI") return library;
  int provided = 0;
  if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS) return library;
  library.transport = open_mpi_transport();
  if (library.transport.find("vader") != std::string::npos) {
    library.single_copy = variable_text("btl_vader_single_copy_mechanism");
  }
  MPI_T_finalize();
  return library;
}

std::string unknown_variable(const std::string& names) {
  int provided = 0;
  if (names.empty() || MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS) return {};
  std::string unknown;
  std::istringstream list(names);
  for (std::string name; unknown.empty() && std::getline(list, name, ',');) {
    if (variable_index(name.c_str()) < 0) unknown = name;
  }
  MPI_T_finalize();
  return unknown;
}

std::string to_json(const Library& library, bool has_settings) {
  std::string json = "{\"library\": \"" + escaped(library.name) + "\", \"version\": \"" + escaped(library.version) +
                     "\", \"transport\": \"" + escaped(library.transport) + "\", \"single_copy\": \"" +
                     escaped(library.single_copy) + "\"";
  if (!has_settings) return json + "}";
  if (library.name == "Open MPI") {
    json += R"(, "settings": "OMPI_MCA_", "settings_flag": "--mca", "settings_names": "short")";
  } else if (library.name == "Intel MPI") {
    json += R"(, "settings": "I_MPI_")";
  } else {
    json += R"(, "settings": "MPIR_CVAR_", "settings_names": "whole")";
  }
  return json + "}";
}

}  // namespace tutti::backend_mpi
