// SPDX-License-Identifier: Apache-2.0
// The floors of the harness, from the ground up. A file includes its own folder and floors below; the floors' test
// (suites/floors) reads these lines.
//   floor 1: statistics, machine, text
//   floor 2: cases, exchange
//   floor 3: verify, record, process, board
//   floor 4: backends, launch
//   floor 5: measure, hosts
//   floor 6: faults, soak, explain, draw, train, gate, accept, simulate, repeat
//   floor 7: session, guidelines
//   floor 8: report, doctor, tune
//
// Each folder is a namespace. A name is found without its folder where only one folder has it; a folder's own name goes
// first. Every header of the harness includes this one, itself or through
// another; those that a backend's shared object is made of do not.
#pragma once

namespace tutti::harness {

namespace statistics {}
namespace machine {}
namespace text {}
namespace cases {}
namespace verify {}
namespace record {}
namespace backends {}
namespace process {}
namespace board {}
namespace launch {}
namespace hosts {}
namespace measure {}
namespace faults {}
namespace soak {}
namespace repeat {}
namespace explain {}
namespace draw {}
namespace train {}
namespace gate {}
namespace session {}
namespace report {}
namespace doctor {}
using namespace statistics;
using namespace machine;
using namespace text;
using namespace cases;
using namespace verify;
using namespace record;
using namespace backends;
using namespace process;
using namespace board;
using namespace launch;
using namespace hosts;
using namespace measure;
using namespace faults;
using namespace soak;
using namespace repeat;
using namespace explain;
using namespace draw;
using namespace train;
using namespace gate;
using namespace session;
using namespace report;
using namespace doctor;

}  // namespace tutti::harness
