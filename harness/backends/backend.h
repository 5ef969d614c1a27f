/* SPDX-License-Identifier: Apache-2.0
 *
 * The interface between tutti and a system under test that is not its own: a shared object named
 * libtutti_backend_<name>.so that exports one function, `tutti_backend`. It is C, and includes nothing of tutti, so
 * that it can be compiled with any compiler and against any MPI; harness/backends/mpi is an example of all of it.
 *
 * How it is called: always from one thread. open once; then any number of split and free_group, and of prepare, run (or
 * post and test or wait), release, where several calls may be prepared and posted at once; close once. describe,
 * start_command and supports may be called at any time after the object was loaded, also before open. All ranks of a
 * group run and post the same collectives on it, in the same order; they complete them in any.
 *
 * A process has one rank, unless the backend says TUTTI_STARTER_NONE: it may then have several, which one thread calls
 * for; `local` says for which.
 *
 * How it fails: a function that returns int returns 0 for success. Otherwise it wrote a sentence into its message that
 * names the value and what is allowed. It never prints, exits or throws. After a failed open, only describe and
 * supports are called; after a failed split, run, post, test or wait, nothing.
 */
#ifndef TUTTI_HARNESS_BACKENDS_BACKEND_H
#define TUTTI_HARNESS_BACKENDS_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Changes whenever anything in this file changes its layout or its meaning. An object with another number is refused.
 */
#define TUTTI_BACKEND_ABI 8

/* How the processes of a backend's ranks are started: TuttiBackend.starter. */
enum {
  TUTTI_STARTER_SPAWN = 0,  /* a process for each rank, however it was started: tutti spawns it */
  TUTTI_STARTER_MPIRUN = 1, /* a process for each rank, which only the command of start_command can start */
  TUTTI_STARTER_NONE = 2    /* ranks need no process of their own: several may be in one */
};

/* Where the buffers of a call lie: TuttiBackendCall.memory. */
enum { TUTTI_MEMORY_HOST = 0, TUTTI_MEMORY_CUDA = 1 };

/* Where a function writes text: `size` bytes at `text`, terminated by 0, cut off where it does not fit. */
typedef struct TuttiBackendMessage {
  char* text;
  size_t size;
} TuttiBackendMessage;

/* A group of ranks, as one of them sees it: what the launcher started, or what split made. */
typedef struct TuttiBackendGroup {
  int32_t ranks;
  int32_t rank;
  void* handle; /* null: the world */
} TuttiBackendGroup;

/* With what the ranks of this process join the others. */
typedef struct TuttiBackendJoin {
  int32_t local_ranks;    /* ranks of this process, numbered from that of the world on; 1 unless TUTTI_STARTER_NONE */
  const int32_t* devices; /* [local_ranks] of the GPUs that the ranks have; null: none */
  int32_t host;           /* number of the host that this process runs on */
  int32_t rank_on_host;   /* the place of its first rank among the ranks of that host */
  /* Every process's `bytes` bytes, one after the other by the processes' first rank, into `all`. Collective. bytes: at
   * most TUTTI_EXCHANGE_BYTES. Returns 0 for success; after a failure the job is given up. */
  int (*exchange)(void* context, const void* mine, void* all, size_t bytes);
  void* context;
  const char* address; /* at which other hosts reach this one; null where all ranks are on one host */
} TuttiBackendJoin;
#define TUTTI_EXCHANGE_BYTES 1024

/* One call, the same on all ranks of its group but for the addresses, and of a v form for what follows them. Names are
 * those of `tutti list`. "send" and "recv" are calls between two ranks; those from one rank to another are matched in
 * the order in which they were run or posted on either side. */
typedef struct TuttiBackendCall {
  const char* collective; /* "all_reduce", "reduce_scatter", "all_to_all_v", ..., "send", "recv" */
  const char* dtype;      /* "float", "int32", "bfloat16", ...; any for barrier */
  const char* op;         /* "sum", "max", "avg", ...; "none" where nothing is reduced */
  int32_t root;           /* of send and recv the other rank; 0 where there is no root */
  int32_t in_place; /* 1: the smaller of `send` and `recv` is block `rank` of the larger; of equals, both are one */
  int64_t count;    /* elements per block; an input or output for, or from, each rank has a block per rank */
  uint64_t element_bytes;
  const void* send; /* ignored by supports; so is recv */
  void* recv;
  void* group;          /* the handle of the group; ranks are numbered as in it */
  int32_t asynchronous; /* 0: the handle is for run; 1: it is for post, test and wait */

  /* v forms (gather_v, all_gather_v, scatter_v, reduce_scatter_v, all_to_all_v); 0 and null for all others. Block b of
   * an input that is divided has send_counts[b] elements and begins send_displacements[b] elements after `send`; of an
   * output, recv_counts and recv_displacements after `recv`. `blocks` is the length of each array, the number of ranks.
   * The arrays of a buffer that is not divided are null: it is block `rank` of the other one, of `count` elements.
   * Where only the root has the divided buffer, the others are given its counts and displacements too. The arrays need
   * not outlive the function. In place, all_to_all_v has the same arrays for both. */
  int32_t blocks;
  const int64_t* send_counts;
  const int64_t* send_displacements;
  const int64_t* recv_counts;
  const int64_t* recv_displacements;

  /* "bandwidth", "bibandwidth" and "message_rate": messages that one rank of a pair sends, `count` elements each and
   * one after the other in its buffer; 0 of all others. */
  int32_t window;
  /* "pingpong", "bandwidth" and "bibandwidth": the ranks of the one pair that plays, the lower one first, while all
   * others return at once; 0 and 0: every pair. */
  int32_t first_of_pair;
  int32_t second_of_pair;

  int32_t memory; /* TUTTI_MEMORY_...: where `send` and `recv` lie */
  void* stream;   /* of memory of a device: post enqueues on it and returns; run posts and synchronises. Else null */
  int32_t local;  /* which of this process's ranks calls; 0 where there is one */

  /* "premul_sum": one element of the dtype, in memory of the host, by which this rank's input is multiplied. It need
   * not outlive the function. Null of all other ops, and for supports. */
  const void* factor;
} TuttiBackendCall;

typedef struct TuttiBackend {
  /* TUTTI_BACKEND_ABI as the object was compiled with. First, whatever the number. */
  uint32_t abi;

  /* The name in rows, ids and `--backends`: that of the file. */
  const char* name;

  int32_t starter; /* TUTTI_STARTER_... */

  /* Writes a JSON object that says how ranks are started; null unless TUTTI_STARTER_MPIRUN.
   *   "command":     [strings], to which the program of a rank and its arguments are appended
   *   "environment": {name: value} put over that of the command; may be left out
   *   "leaves":      [strings], how paths begin of files that ranks may leave behind which are killed while they start;
   *                  may be left out. After a job that failed, new ones are removed that no process has mapped
   *   "across":      [strings] in place of "command" for ranks on several hosts; may be left out: it has none there
   *   "pretended":   {name: value} put over "environment" where several of the hosts are one machine, as in tests: its
   *                  library is not to find that out; may be left out
   * In the strings {ranks} stands for the number of ranks, {directory} for the directory of the job, and {crowded} for
   * 1 where ranks outnumber cores, else 0. Of several hosts {hosts} is "a:2,b:2", with the ranks of each, in their
   * order; {agent} is what takes a host's name and a line of the shell, as ssh does, in words; {agent_program} is the
   * same where it has to be one word; {address} is at which the others reach this host, and {subnet} the network of
   * that. Other hosts have no {directory}. A rank finds TUTTI_CONTROL, TUTTI_BACKENDS and TUTTI_TRANSPORTS as the
   * command does, and its number in PMI_RANK, PMIX_RANK or OMPI_COMM_WORLD_RANK. The command stays in the foreground.
   * Its exit code is not 0 where a rank's was not. It ends its ranks upon SIGTERM. Returns non-zero where the text did
   * not fit. */
  int (*start_command)(TuttiBackendMessage* text);

  /* Joins the world of the library, initialising it unless the process has done so already. The library's number of
   * ranks and own rank must be those of `world`: otherwise an error that names both numbers (a library that the
   * launcher did not start makes every rank a world of one, and would be measured as such). Collective. */
  int (*open)(const TuttiBackendGroup* world, const TuttiBackendJoin* join, TuttiBackendMessage* message);

  /* Writes a JSON object with the strings `library`, `version`, `transport` and `single_copy` (how one rank reads
   * another's memory: "cma", "none", ...); "" where it is not known. Before open, transport and single_copy are "".
   * What is loaded at run time adds `missing`, where it cannot be used on this machine: why not, and what to do. Where
   * nothing hints at the device that it is for, it adds `without`, the device's name: only who asks for it is told
   * then. Before open, a library that has settings adds `settings`: how the names of their variables of the environment
   * begin. A start command that sets some itself, with words FLAG NAME VALUE, adds `settings_flag`, the flag. A library
   * that can look names up adds `settings_names`, "short" or "whole", without or with that beginning: open then finds
   * the names of its settings in TUTTI_SETTINGS, commas between, and fails for one that the library does not know. Other
   * strings go into the record as they are. Returns non-zero where the text did not fit. */
  int (*describe)(TuttiBackendMessage* text);

  /* Makes a group of the ranks of `parent` (a handle) that pass the same colour, ordered by key, then by rank. With a
   * colour below 0 a rank is in none: its ranks are 0. Collective over the parent, on which nothing is in flight. A
   * process of several ranks calls it once for all of them, which stay together; group->rank is that of the first. */
  int (*split)(void* parent, int32_t colour, int32_t key, TuttiBackendGroup* group, TuttiBackendMessage* message);

  /* Frees a group of split; no handle of a call on it is left. Collective over the group. */
  int (*free_group)(void* group, TuttiBackendMessage* message);

  /* Whether prepare would accept `call`, on this rank alone and without a look at the addresses. If not, `reason` says
   * why, in the words of the row that is then `skipped`. */
  int (*supports)(const TuttiBackendCall* call, TuttiBackendMessage* reason);

  /* Makes `call` ready to be run any number of times: looks names up, allocates. *handle is then not null. The strings
   * of `call` need not outlive the function; the buffers must outlive the handle. Errors: those of supports. */
  int (*prepare)(const TuttiBackendCall* call, void** handle, TuttiBackendMessage* message);

  /* Runs the prepared call once, and returns when this rank's buffers may be read and written again. The library's
   * blocking function as its users call it, and nothing else: this is what is timed. */
  int (*run)(void* handle, TuttiBackendMessage* message);

  /* Starts the prepared call, with the library's nonblocking function, and returns at once. Until it is complete the
   * buffers are the library's, and the handle is not posted again. */
  int (*post)(void* handle, TuttiBackendMessage* message);

  /* *is_complete: whether what was posted is, as it is where nothing was. Makes progress. */
  int (*test)(void* handle, int32_t* is_complete, TuttiBackendMessage* message);

  /* Returns when what was posted is complete. Makes progress, with the other calls of this rank too. */
  int (*wait)(void* handle, TuttiBackendMessage* message);

  /* Frees a handle of prepare; what was posted is complete. */
  void (*release)(void* handle);

  /* Leaves the world; finalises the library if open has initialised it. All handles are released and all groups freed.
   * Collective. */
  int (*close)(TuttiBackendMessage* message);

  /* All that follows may be null, where the library has no such thing. */

  /* Calls that are posted in between are one group to the library: it may start them together. */
  int (*begin_group)(TuttiBackendMessage* message);
  int (*end_group)(TuttiBackendMessage* message);

  /* Makes memory known to the library before calls use it, as `kind` of buffer (0: private, 1: shared by all ranks of
   * the host, or a symmetric window). Collective over the group where kind is 1: a process of several ranks then calls
   * it for all of them between begin_group and end_group, which says what was wrong. */
  int (*register_buffer)(void* group, int32_t local, void* memory, uint64_t bytes, int32_t kind, void** handle,
                         TuttiBackendMessage* message);
  int (*forget_buffer)(int32_t local, void* handle, TuttiBackendMessage* message);

  /* Whether the library found an error of its own accord, after a call had returned. */
  int (*poll_error)(int32_t local, TuttiBackendMessage* message);
  /* Ends whatever is posted, which is then as failed. Nothing but close is called after it. */
  int (*abort)(int32_t local, TuttiBackendMessage* message);

  /* Memory of the library's own, for what is registered as a symmetric window. Page-aligned. */
  int (*allocate)(int32_t local, uint64_t bytes, void** memory, TuttiBackendMessage* message);
  int (*give_back)(int32_t local, void* memory, TuttiBackendMessage* message);
} TuttiBackend;

/* The one exported symbol. The table is constant and lives as long as the object. */
const TuttiBackend* tutti_backend(void);
typedef const TuttiBackend* (*TuttiBackendEntry)(void);
#define TUTTI_BACKEND_SYMBOL "tutti_backend"

#ifdef __cplusplus
}
#endif

#endif
