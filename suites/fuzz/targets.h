// SPDX-License-Identifier: Apache-2.0
// What is fuzzed: for each format that comes from outside a function that reads any bytes as if they were of it. It
// returns, or ends the program: by a crash, by a sanitizer, or because a property does not hold. README.md says how
// they are run.
#pragma once

#include <string_view>

#include "impl/types/status.h"

namespace tutti::fuzz {

/// `sizes\n8:64M:x4`: an option's name on the first line, and after it its value. What is read, printed and read again
/// is the same.
void options(std::string_view input);
/// A list of hosts, a hostfile, lists of Slurm, and where processes meet. What is read, printed and read again is the
/// same; no host can be taken for an option of an agent; no list is without bound.
void hosts(std::string_view input);
/// What the agent of `tutti doctor --hosts` prints: the answers are the same in pieces of any length.
void answers(std::string_view input);
/// The id of a case, and of a cell. What is read is printed as it was.
void case_ids(std::string_view input);
/// A TOML file: whatever it says is a text that the options take, or a message.
void suite_files(std::string_view input);
/// A file of counts. What is read has a name and can be shared out.
void counts_files(std::string_view input);
/// An algorithm in MSCCL's XML. What is right as thread blocks is right as plans.
void msccl_files(std::string_view input);
/// The calls of a trace. What is read are cells with ids.
void traces(std::string_view input);
/// Rows, and as a baseline of the gate. What is read, printed and read again is the same.
void csv(std::string_view input);
/// The same of a row and of a record.
void json(std::string_view input);
/// A result as `tutti report` and `tutti compare` read it. What both make of it, a bundle for the page and files for
/// other programs, is whole, and nothing in it steers a terminal.
void results(std::string_view input);
/// What ranks, launcher and the processes on its machines tell each other: frames, and the texts within. Also what
/// mpirun prints as it ends.
void messages(std::string_view input);
/// What processes say to a launcher over the control socket, which expects three ranks; a byte 0xff is where the next
/// process begins. None takes part without a hello of a rank that is expected and has not come.
void ranks(std::string_view input);
/// Words, one on each line, as a drop-in program gets them. A sweep of sizes ends.
void perf_flags(std::string_view input);
/// What a rank gets over a link from a rank of another host. It is the same in pieces of any length, and is written
/// nowhere but where the peer may write.
void frames(std::string_view input);
/// `c` or `s`, and what a stranger says to a client or a server: it is let in by neither. Or `m`, and what somebody
/// between two ends of one job does to each byte: they know each other if and only if that is nothing.
void greetings(std::string_view input);

/// What somebody on the wire does to sealed messages: `w` and other bytes in their place, `c` and what is done to each
/// byte, or `m` and which messages of both directions come. What is understood is the beginning of what was sent.
void sealed(std::string_view input);

/// That a message can be shown to somebody: it says something, in at most five lines, without control characters.
void check_message(const Status& status);

}  // namespace tutti::fuzz
