#pragma once

/* Trireme's collectives for C and for every language that calls C: libtrireme_wire.so, without
 * torch. It compiles as C11 and as C++.
 *
 * Calls return kTriremeOk or what went wrong; no C++ exception leaves the library.
 * trireme_last_error() says more. A null handle or buffer, a size below 0 and a value that names
 * nothing are kTriremeInvalidArgument, before anything has happened. Results that a call returns
 * through pointers are written only where it returns kTriremeOk.
 *
 * Operations take `work`, the last argument. Null: the call blocks until the operation has ended
 * and returns how. Else the call returns at once; the handle is waited for with trireme_wait and
 * freed with trireme_work_free, and buffers are lent to the library until the operation has ended.
 *
 * All ranks of a group call the same operations in the same order; where they differ, all ranks get
 * kTriremeInvalidArgument. A failure ends its group: all calls on it return its first error, on all
 * its ranks; other groups go on. A lost rank ends the world: then all calls return the world's first
 * error, on every rank, until trireme_regroup.
 *
 * Threads: the calls on one group, and those on one world, come from one thread at a time;
 * different groups and worlds are independent. trireme_wait, trireme_abort, trireme_group_abort and the error functions
 * may be called from any thread; a handle must not be used while or after it is freed. No call from
 * a child that was forked after trireme_connect. */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TRIREME_API __attribute__((visibility("default")))
#else
#define TRIREME_API
#endif

/* ---- What calls return */

typedef int32_t TriremeStatus;

enum TriremeStatusCode {
  kTriremeOk = 0,
  kTriremeInvalidArgument = 1,   /* The caller passed something wrong. */
  kTriremeTimeout = 2,           /* A deadline passed. */
  kTriremePeerLost = 3,          /* Another rank went away. */
  kTriremeIo = 4,                /* The operating system refused or failed. */
  kTriremeCorruptData = 5,       /* A message is not what it claims to be. */
  kTriremeResourceExhausted = 6, /* Out of memory or descriptors. */
  kTriremeUnavailable = 7,       /* This build or machine lacks what was asked for. */
  kTriremeCancelled = 8,         /* Somebody asked to stop. */
  kTriremePending = 9,           /* trireme_wait: its time has passed, the operation goes on. */
};

/* Name of a status: `ok`, `invalid argument`, ... Never null. */
TRIREME_API const char* trireme_status_text(TriremeStatus status);

/* Text of this thread's last call that failed, in one line; "" before the first. Valid until the
 * thread's next failure. */
TRIREME_API const char* trireme_last_error(void);

/* World rank that the same error is about: lost, late, or it gave up; -1 where it is about none. */
TRIREME_API int32_t trireme_last_error_peer(void);

/* Grows when a function's arguments or meaning change. */
enum { kTriremeWireVersion = 6 };

/* kTriremeWireVersion of the library that is loaded. */
TRIREME_API int32_t trireme_wire_version(void);

/* ---- The store, where ranks find each other */

typedef struct TriremeStore TriremeStore;

/* Serves a store from this process, on a thread of its own, until it is freed: for programs that
 * start ranks.
 *
 * host    an address of this host. port: 0 for any free one.
 * token   secret of the job: who has it may join. Null: of TRIREME_TOKEN or the file of
 *         TRIREME_TOKEN_FILE; else one that follows from the port and keeps out accidents only. */
TRIREME_API TriremeStatus trireme_store_serve(const char* host, int32_t port, const char* token,
                                              TriremeStore** store);
TRIREME_API TriremeStatus trireme_store_port(const TriremeStore* store, int32_t* port);
TRIREME_API void trireme_store_free(TriremeStore* store); /* Null is allowed. */

/* ---- The world of all ranks */

typedef struct TriremeWorld TriremeWorld;

typedef struct TriremeWorldOptions {
  size_t struct_bytes; /* Set by trireme_world_options. */
  int32_t rank;
  int32_t world_size;
  const char* store_host;
  int32_t store_port;
  int32_t serves_store; /* Not 0: rank 0 serves the store there; else somebody else does. */
  const char* name;     /* Worlds that meet in the same store have different names. */
  int64_t deadline_ms;  /* Of the start, and of every operation that names none. */

  /* Changes speed only. */
  int32_t shares_memory; /* Not 0: with the ranks of the same host. */

  const char* token; /* That the store has, as for trireme_store_serve. */

  /* Changes speed only. */
  const char* ofi_provider; /* Of libfabric, for large messages: "efa", "verbs;ofi_rxm",
                               "tcp;ofi_rxm", "" for the first that there is. Null: tcp. */
} TriremeWorldOptions;

/* The defaults: one rank, a store at 127.0.0.1 that rank 0 serves, 300 s. The port is to be set
 * where there is more than one rank. struct_bytes: sizeof(TriremeWorldOptions); one that the library
 * does not know is refused, before anything is written. */
TRIREME_API TriremeStatus trireme_world_options(TriremeWorldOptions* options, size_t struct_bytes);

/* Meets the other ranks and connects to them. Blocks until all are there or the deadline passes. */
TRIREME_API TriremeStatus trireme_connect(const TriremeWorldOptions* options, TriremeWorld** world);

/* The same with what a launcher has set: TRIREME_RANK or RANK and those that go with them, the
 * job's token among them, as docs/environment.md lists them; a world of one rank where none is set.
 * kTriremeUnavailable where torchrun serves a store of torch's kind, which only torch can ask. */
TRIREME_API TriremeStatus trireme_connect_from_environment(TriremeWorld** world);

TRIREME_API TriremeStatus trireme_rank(const TriremeWorld* world, int32_t* rank);
TRIREME_API TriremeStatus trireme_world_size(const TriremeWorld* world, int32_t* world_size);

/* Orderly end: says goodbye, waits until all ranks have. Its groups have been freed before. Then
 * only trireme_world_free may follow. */
TRIREME_API TriremeStatus trireme_shutdown(TriremeWorld* world);

/* Ends the world on purpose: every operation, on every rank, fails with kTriremeCancelled, `reason`
 * and this rank (trireme_last_error_peer), unless the world has failed before. Any thread. */
TRIREME_API TriremeStatus trireme_abort(TriremeWorld* world, const char* reason);

/* Goes on, after a failure, with the ranks that are left: those that call this too get new ranks in
 * the order of the old ones. Groups and works have been freed before. A world that is well ends
 * first, on all ranks, as by trireme_abort. Blocks until the new ranks are connected.
 *
 * members    ranks that are to go on, the same list on all; null: those that call within
 * `window_ms` of the first; num_members is not read then. Over at once where nobody else could
 * come. Returns    kTriremeTimeout where a member, or this rank itself, is too late;
 * kTriremePeerLost where a member has ended, or the store with the process that served it: so serve
 * it from one that is no rank. But for the store's loss it may be called again. */
TRIREME_API TriremeStatus trireme_regroup(TriremeWorld* world, const int32_t* members,
                                          int32_t num_members, int64_t window_ms);

/* The rank that `rank` had when the world was made. */
TRIREME_API TriremeStatus trireme_first_rank(const TriremeWorld* world, int32_t rank,
                                             int32_t* first_rank);

/* Without trireme_shutdown before, the others see a lost rank. What groups and works still need
 * stays until they are freed. Null is allowed. */
TRIREME_API void trireme_world_free(TriremeWorld* world);

/* ---- Groups */

typedef struct TriremeGroup TriremeGroup;

/* The same on all members, but for the number of the device, and the stream. */
typedef struct TriremeGroupOptions {
  size_t struct_bytes;  /* Set by trireme_group_options. */
  const char* name;     /* The same on all members, and no other's of the world. */
  const int32_t* ranks; /* World ranks, this one among them; group rank i is ranks[i]. Null: all, in
                           order; num_ranks is not read then. */
  int32_t num_ranks;
  int64_t deadline_ms; /* Of an operation; 0: that of the world. */

  /* What the bits of a reduction depend on: not 0 leaves the order to the algorithm, which may be
   * faster; 0 is one fixed order. */
  int32_t any_order;

  /* The last ranks of the group train nothing: in an all_reduce, which they call like the others,
   * they sum for those on links that would else be idle; their data is left. Other reductions are
   * refused. At least two ranks are none. */
  int32_t num_reducers;

  /* Where buffers are: "cpu", or "cuda:1" for memory of this process's GPU 1. On GPUs, operations
   * start after what `stream`, a cudaStream_t, has at the call; it outlives the group. Null is none:
   * they start at once. CUDA's default streams are cudaStreamLegacy and cudaStreamPerThread. */
  const char* device;
  void* stream;
  int32_t checks_calls; /* On GPUs, not 0: ranks compare each call before it starts. */

  const char* algorithm; /* Changes speed only: taken wherever it can be. "one_shot", "two_hop",
                            "halving_doubling", "ring", "two_level"; null: what costs least. */
} TriremeGroupOptions;

/* The defaults: all ranks as "all", the world's deadline, one fixed order, buffers of the CPU.
 * struct_bytes: sizeof(TriremeGroupOptions), as above. */
TRIREME_API TriremeStatus trireme_group_options(TriremeGroupOptions* options, size_t struct_bytes);

/* Ranks of a world that run operations together. options: null for the defaults.
 *
 * Errors   kTriremeUnavailable, saying why, where there is no such device. */
TRIREME_API TriremeStatus trireme_group_create(TriremeWorld* world,
                                               const TriremeGroupOptions* options,
                                               TriremeGroup** group);
TRIREME_API TriremeStatus trireme_group_rank(const TriremeGroup* group, int32_t* group_rank);
TRIREME_API TriremeStatus trireme_group_size(const TriremeGroup* group, int32_t* size);

/* Of the calls from now on, this rank's alone; also of those that nobody waits for. Above 0. */
TRIREME_API TriremeStatus trireme_group_set_deadline(TriremeGroup* group, int64_t deadline_ms);

/* Ends the group on purpose: every operation of it, on every rank, fails with kTriremeCancelled,
 * `reason` and this rank, unless the group has failed before. Any thread. */
TRIREME_API TriremeStatus trireme_group_abort(TriremeGroup* group, const char* reason);

/* A group with operations under way fails. Null is allowed. */
TRIREME_API void trireme_group_free(TriremeGroup* group);

/* Memory for buffers, zeros, until the group is freed: where its ranks share memory, operations on
 * it need no copy. All members call it with the same number, in the order of the operations.
 * Blocks. bytes: at least 1. */
TRIREME_API TriremeStatus trireme_allocate(TriremeGroup* group, int64_t bytes, void** memory);

/* The next all_reduce, reduce_scatter, all_gather or barrier carries this number, a hash
 * of what all ranks should hold alike. Where it differs, all ranks get kTriremeCorruptData, which
 * names those that differ from the most; kTriremeInvalidArgument where a rank has given none. */
TRIREME_API TriremeStatus trireme_attach_hash(TriremeGroup* group, uint64_t hash);

/* ---- Operations. Ranks, roots and peers are group ranks. Buffers of 0 elements may be null. */

typedef struct TriremeWork TriremeWork;

typedef int32_t TriremeDtype;

enum TriremeDtypeCode {
  kTriremeF64 = 0,
  kTriremeF32 = 1,
  kTriremeF16 = 2,
  kTriremeBf16 = 3,
  kTriremeI64 = 4,
  kTriremeI32 = 5,
  kTriremeU8 = 8,
  kTriremeBool = 9
};

typedef int32_t TriremeReduction;

enum TriremeReductionCode {
  kTriremeSum = 0,
  kTriremeAverage = 1, /* Of floating-point types. */
  kTriremeProduct = 2,
  kTriremeMin = 3,
  kTriremeMax = 4,
  kTriremeAnd = 5, /* Bitwise, of whole numbers. */
  kTriremeOr = 6,
  kTriremeXor = 7
};

/* data = the reduction over ranks of data, in place. Ranks are combined in one fixed order: the
 * same bits on all ranks and in every call.
 *
 * data   [count] elements, aligned to the element. */
TRIREME_API TriremeStatus trireme_all_reduce(TriremeGroup* group, void* data, int64_t count,
                                             TriremeDtype dtype, TriremeReduction reduction,
                                             TriremeWork** work);

/* The same for the root alone; the others' data stays. */
TRIREME_API TriremeStatus trireme_reduce(TriremeGroup* group, void* data, int64_t count,
                                         TriremeDtype dtype, TriremeReduction reduction,
                                         int32_t root, TriremeWork** work);

/* This rank's part of `data` becomes the reduction, the rest is left.
 *
 * counts   [size] elements of each rank's part, one behind the other. */
TRIREME_API TriremeStatus trireme_reduce_scatter(TriremeGroup* group, void* data,
                                                 const int64_t* counts, TriremeDtype dtype,
                                                 TriremeReduction reduction, TriremeWork** work);

/* The same with each rank's elements multiplied by its own `scale` before the sum: a weighted
 * average where the scales are each rank's share. Of floating-point types; f16 and bf16 are scaled
 * and summed in f32. scale: finite. */
TRIREME_API TriremeStatus trireme_all_reduce_scaled(TriremeGroup* group, void* data, int64_t count,
                                                    TriremeDtype dtype, double scale,
                                                    TriremeWork** work);
TRIREME_API TriremeStatus trireme_reduce_scaled(TriremeGroup* group, void* data, int64_t count,
                                                TriremeDtype dtype, double scale, int32_t root,
                                                TriremeWork** work);
TRIREME_API TriremeStatus trireme_reduce_scatter_scaled(TriremeGroup* group, void* data,
                                                        const int64_t* counts, TriremeDtype dtype,
                                                        double scale, TriremeWork** work);

/* all = what the ranks gave, one behind the other.
 *
 * mine           [bytes_by_rank[own]], lent until the operation has ended; its part of `all`, or
 *                apart from it.
 * bytes_by_rank  [size] */
TRIREME_API TriremeStatus trireme_all_gather(TriremeGroup* group, const void* mine, void* all,
                                             const int64_t* bytes_by_rank, TriremeWork** work);

/* data = the root's data. */
TRIREME_API TriremeStatus trireme_broadcast(TriremeGroup* group, void* data, int64_t bytes,
                                            int32_t root, TriremeWork** work);

/* Part i of `send` goes to rank i, part i of `recv` comes from it: parts of any sizes, one behind
 * the other. No overlap.
 *
 * send_bytes, recv_bytes   [size] bytes of each part. */
TRIREME_API TriremeStatus trireme_all_to_all(TriremeGroup* group, const void* send,
                                             const int64_t* send_bytes, void* recv,
                                             const int64_t* recv_bytes, TriremeWork** work);

/* The root receives `bytes` from every rank, one behind the other (gather), or gives them out
 * (scatter). all: [size * bytes], of the root only. */
TRIREME_API TriremeStatus trireme_gather(TriremeGroup* group, const void* mine, int64_t bytes,
                                         void* all, int32_t root, TriremeWork** work);
TRIREME_API TriremeStatus trireme_scatter(TriremeGroup* group, const void* all, void* mine,
                                          int64_t bytes, int32_t root, TriremeWork** work);

/* Ends once all ranks have called it. */
TRIREME_API TriremeStatus trireme_barrier(TriremeGroup* group, TriremeWork** work);

/* Messages of the host's memory between two ranks, apart from the group's operations. A recv takes
 * the oldest message of its tag from its source, or from any rank. Another count or type than the
 * recv's ends the group with kTriremeInvalidArgument, and so does a message that nobody has received
 * when the group is freed.
 *
 * A send of up to 8 KiB ends once it is copied, which says nothing of the receiver; a larger one
 * once the receiver has it. */
enum { kTriremeAnySource = -1 };

TRIREME_API TriremeStatus trireme_send(TriremeGroup* group, int32_t peer, const void* data,
                                       int64_t count, TriremeDtype dtype, uint64_t tag,
                                       TriremeWork** work);
TRIREME_API TriremeStatus trireme_recv(TriremeGroup* group, int32_t source, void* data,
                                       int64_t count, TriremeDtype dtype, uint64_t tag,
                                       TriremeWork** work);

/* Takes fewer elements, too; trireme_received says how many bytes came. */
TRIREME_API TriremeStatus trireme_recv_up_to(TriremeGroup* group, int32_t source, void* data,
                                             int64_t max_count, TriremeDtype dtype, uint64_t tag,
                                             TriremeWork** work);

/* Of a recv that has ended: the group rank that has sent, and how much. */
TRIREME_API TriremeStatus trireme_received(TriremeWork* work, int32_t* source, int64_t* bytes);

/* Withdraws a recv for which no message has come: trireme_wait says kTriremeCancelled then, and the
 * buffer is free. is_cancelled: 0 where it goes on, or has ended. */
TRIREME_API TriremeStatus trireme_cancel(TriremeWork* work, int32_t* is_cancelled);

/* Blocks until the operation has ended; returns how. timeout_ms: below 0, until its deadline, after
 * which the world fails; else kTriremePending after so long. May be called again. */
TRIREME_API TriremeStatus trireme_wait(TriremeWork* work, int64_t timeout_ms);

/* What is given to `stream`, a cudaStream_t of the group's GPU as in TriremeGroupOptions, from now
 * on starts after the operation, for which this process does not wait. Of groups on GPUs. Returns how it failed where
 * it has. */
TRIREME_API TriremeStatus trireme_run_after(void* stream, TriremeWork* work);

/* Does not wait: an operation under way goes on, its buffers stay lent. Null is allowed. */
TRIREME_API void trireme_work_free(TriremeWork* work);

#ifdef __cplusplus
}
#endif
