// SPDX-License-Identifier: Apache-2.0
// What readers of results may rely on, generated from the table of columns: the JSON Schema of a document, and the
// table for the docs.
#pragma once

#include <string>

#include "harness/floors.h"

namespace tutti::harness::report {

/// JSON Schema (draft 2020-12) of what JsonFile writes. The committed harness/report/schema.json is this text; a test
/// compares them.
[[nodiscard]] std::string schema_json();

/// The columns as a Markdown table: name, unit, meaning.
[[nodiscard]] std::string columns_markdown();

}  // namespace tutti::harness::report
