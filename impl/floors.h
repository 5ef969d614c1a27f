// SPDX-License-Identifier: Apache-2.0
// The folders of impl, from the ground up. A file includes its own folder and the floors below, never what is above it
// or beside it. suites/floors/floors_test.py reads these lines.
//
// floor 1: cuda, types
// floor 2: collective, reduce, tcp
// floor 3: schedule, transports
// floor 4: algorithms, bootstrap, execute, prove
// floor 5: device
// floor 6: communicator
// floor 7: embed
// floor 8: bindings
#pragma once
