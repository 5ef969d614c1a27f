// SPDX-License-Identifier: Apache-2.0
// What a shared library of tutti shows to the program that it is loaded into.
#pragma once

#define TUTTI_API [[gnu::visibility("default")]]
