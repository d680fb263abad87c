/* What goes wrong: mistakes of the caller, ranks that differ, are late, give up or die. */

#define _POSIX_C_SOURCE 200809L

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "tests/wire/c/ranks.h"

static void expect_refused(TriremeStatus status, const char* part) {
  TRIREME_EXPECT(status == kTriremeInvalidArgument);
  expect_error(part);
  TRIREME_EXPECT(trireme_last_error_peer() == -1);
}

static void world_mistakes(void) {
  TriremeWorldOptions options;
  TriremeWorld* world = NULL;
  expect_refused(trireme_world_options(NULL, sizeof options), "'options' is null");
  expect_refused(trireme_world_options(&options, sizeof options + 8), "'struct_bytes'");
  TRIREME_EXPECT_OK(trireme_world_options(&options, sizeof options));
  expect_refused(trireme_connect(NULL, &world), "'options' is null");
  expect_refused(trireme_connect(&options, NULL), "'world' is null");
  options.struct_bytes = 8;
  expect_refused(trireme_connect(&options, &world), "'struct_bytes' is 8");
  TRIREME_EXPECT_OK(trireme_world_options(&options, sizeof options));
  options.world_size = 2;
  expect_refused(trireme_connect(&options, &world), "'store_port' is 0");
  options.rank = 2;
  expect_refused(trireme_connect(&options, &world), "no rank 2 in a world of 2");
  TRIREME_EXPECT_OK(trireme_world_options(&options, sizeof options));
  options.deadline_ms = 0;
  expect_refused(trireme_connect(&options, &world), "'deadline_ms'");
  TRIREME_EXPECT_OK(trireme_world_options(&options, sizeof options));
  options.store_host = NULL;
  expect_refused(trireme_connect(&options, &world), "'store_host' is null");
  options.store_host = "0.0.0.0"; /* others reach it, and there is no token */
  expect_refused(trireme_connect(&options, &world), "set TRIREME_TOKEN to one secret");
  TRIREME_EXPECT(world == NULL);
  TriremeStore* store = NULL;
  expect_refused(trireme_store_serve("127.0.0.1", 70000, NULL, &store), "no port 70000");
  expect_refused(trireme_store_serve(NULL, 0, NULL, &store), "'host' is null");
  expect_refused(trireme_store_serve("127.0.0.1", 0, "", &store), "'token' is empty");
  expect_refused(trireme_store_serve("0.0.0.0", 0, NULL, &store),
                 "set TRIREME_TOKEN to one secret");
  TRIREME_EXPECT(store == NULL);
}

static void null_handles(void) {
  int32_t number = 0;
  TriremeGroup* group = NULL;
  expect_refused(trireme_rank(NULL, &number), "'world' is null");
  expect_refused(trireme_shutdown(NULL), "'world' is null");
  expect_refused(trireme_abort(NULL, "reason"), "'world' is null");
  expect_refused(trireme_group_create(NULL, NULL, &group), "'world' is null");
  expect_refused(trireme_group_rank(NULL, &number), "'group' is null");
  expect_refused(trireme_barrier(NULL, NULL), "'group' is null");
  expect_refused(trireme_send(NULL, 0, &number, 1, kTriremeI32, 0, NULL), "'group' is null");
  expect_refused(trireme_wait(NULL, 0), "'work' is null");
  expect_refused(trireme_cancel(NULL, &number), "'work' is null");
  trireme_store_free(NULL);
  trireme_world_free(NULL);
  trireme_group_free(NULL);
  trireme_work_free(NULL);
}

static void operation_mistakes(TriremeGroup* group, const Place* place) {
  double data[4] = {0};
  const int64_t counts[16] = {-1};
  const int64_t ones[16] = {1, 1, 1, 1};
  void* memory = NULL;
  TriremeWork* work = NULL;
  expect_refused(trireme_all_reduce(group, NULL, 4, kTriremeF64, kTriremeSum, NULL),
                 "'data' is null");
  expect_refused(trireme_all_reduce(group, data, -1, kTriremeF64, kTriremeSum, NULL), "below 0");
  expect_refused(trireme_all_reduce(group, data, INT64_MAX, kTriremeF64, kTriremeSum, NULL),
                 "more than there is memory");
  expect_refused(trireme_all_reduce(group, data, 4, 99, kTriremeSum, NULL), "no dtype 99");
  expect_refused(trireme_all_reduce(group, data, 4, kTriremeF64, -3, NULL), "no reduction -3");
  expect_refused(trireme_all_reduce(group, data, 4, kTriremeF64, kTriremeXor, NULL),
                 "there is no xor of f64");
  expect_refused(trireme_all_reduce(group, (char*)data + 1, 1, kTriremeF64, kTriremeSum, &work),
                 "aligned");
  expect_refused(trireme_broadcast(group, data, 8, place->ranks.count, NULL), "no group rank");
  expect_refused(trireme_reduce_scatter(group, data, counts, kTriremeF64, kTriremeSum, NULL),
                 "'counts' is below 0");
  expect_refused(trireme_all_gather(group, NULL, data, ones, NULL), "'mine' is null");
  expect_refused(trireme_all_to_all(group, data, ones, data, NULL, NULL), "'recv_bytes' is null");
  expect_refused(trireme_gather(group, data, -8, data, 0, NULL), "below 0");
  expect_refused(trireme_recv(group, -2, data, 1, kTriremeF64, 0, NULL), "no group rank -2");
  expect_refused(trireme_send(group, -1, data, 1, kTriremeF64, 0, NULL), "no group rank -1");
  expect_refused(trireme_send(group, 0, data, 1, 99, 0, NULL), "no dtype 99");
  expect_refused(trireme_allocate(group, 0, &memory), "'bytes' is 0");
  expect_refused(trireme_allocate(group, 8, NULL), "'memory' is null");
  TRIREME_EXPECT(work == NULL && memory == NULL);
}

/* A group of all ranks but for what the options say. */
static void expect_no_group(TriremeWorld* world, const TriremeGroupOptions* options,
                            const char* why) {
  TriremeGroup* group = NULL;
  expect_refused(trireme_group_create(world, options, &group), why);
  TRIREME_EXPECT(group == NULL);
}

static void group_mistakes(TriremeWorld* world, const Place* place) {
  const int32_t twice[] = {place->rank, place->rank};
  TriremeGroupOptions options = options_named("twice");
  options.ranks = twice;
  expect_no_group(world, &options, "'num_ranks' is 0");
  options.num_ranks = 2;
  expect_no_group(world, &options, "different ranks");
  options = options_named("of another version");
  options.struct_bytes -= 8;
  expect_no_group(world, &options, "'struct_bytes'");
  options = options_named("late");
  options.deadline_ms = -1;
  expect_no_group(world, &options, "'deadline_ms'");
  options = options_named("all reduce");
  options.num_reducers = place->ranks.count - 1;
  expect_no_group(world, &options, "reducers");
  options = options_named("by chance");
  options.algorithm = "chance";
  expect_no_group(world, &options, "no algorithm 'chance'");
  options = options_named(NULL);
  expect_no_group(world, &options, "'name' is null");
  options.name = "";
  expect_no_group(world, &options, "empty");
  expect_no_group(world, NULL, "'all' already");
  expect_refused(trireme_group_options(NULL, sizeof options), "'options' is null");
  expect_refused(trireme_shutdown(world), "group 'all' is to be freed");
}

static void device_mistakes(TriremeWorld* world, TriremeGroup* group) {
  TriremeGroupOptions options = options_named("on a GPU");
  options.device = NULL;
  expect_no_group(world, &options, "'device' is null");
  options.device = "gpu";
  expect_no_group(world, &options, "'gpu'");
  options.device = "cpu";
  options.stream = &options;
  expect_no_group(world, &options, "'stream' is for a group on a GPU");
  options.stream = NULL;
  options.device = "cuda:999";
  TriremeGroup* none = NULL;
  TRIREME_EXPECT(trireme_group_create(world, &options, &none) == kTriremeUnavailable);
  TRIREME_EXPECT(none == NULL);
  TriremeWork* work = NULL;
  TRIREME_EXPECT_OK(trireme_barrier(group, &work));
  expect_refused(trireme_run_after(NULL, work), "groups on GPUs");
  TRIREME_EXPECT_OK(trireme_wait(work, -1));
  trireme_work_free(work);
}

static void* see_no_error(void* unused) {
  TRIREME_EXPECT(strcmp(trireme_last_error(), "") == 0);
  return unused;
}

/* Errors of one call do no harm to the next. */
void run_mistakes(const Place* place) {
  TRIREME_EXPECT(trireme_wire_version() == kTriremeWireVersion);
  TRIREME_EXPECT(strcmp(trireme_last_error(), "") == 0);
  TRIREME_EXPECT(strcmp(trireme_status_text(kTriremePeerLost), "peer lost") == 0);
  TRIREME_EXPECT(strcmp(trireme_status_text(-1), "no such status") == 0);
  world_mistakes();
  null_handles();
  TriremeWorld* world = connect_rank(place, 20000);
  TriremeGroup* group = group_of_all(world);
  operation_mistakes(group, place);
  group_mistakes(world, place);
  device_mistakes(world, group);
  pthread_t thread;
  TRIREME_EXPECT(pthread_create(&thread, NULL, see_no_error, NULL) == 0);
  TRIREME_EXPECT(pthread_join(thread, NULL) == 0);
  TRIREME_EXPECT_OK(trireme_barrier(group, NULL));
  leave(world, group);
}

/* Ranks that call different things are told so, all of them. */
void run_mismatch(const Place* place) {
  TriremeWorld* world = connect_rank(place, 20000);
  TriremeGroup* group = group_of_all(world);
  float data[8] = {0};
  const int64_t count = place->rank == 1 ? 8 : 4;
  TRIREME_EXPECT(trireme_all_reduce(group, data, count, kTriremeF32, kTriremeSum, NULL) ==
                 kTriremeInvalidArgument);
  expect_error("all_reduce of 4 f32");
  expect_error("all_reduce of 8 f32");
  TRIREME_EXPECT(trireme_barrier(group, NULL) ==
                 kTriremeInvalidArgument); /* the first error stays */
  trireme_group_free(group);
  TRIREME_EXPECT_OK(trireme_shutdown(world)); /* the group alone has failed */
  trireme_world_free(world);
}

/* One rank leaves the order to the algorithm, the others do not. */
void run_other_order(const Place* place) {
  TriremeWorld* world = connect_rank(place, 20000);
  TriremeGroup* group = NULL;
  TriremeGroupOptions options = options_named("all");
  options.any_order = place->rank == 1;
  TRIREME_EXPECT_OK(trireme_group_create(world, &options, &group));
  float data[4] = {0};
  TRIREME_EXPECT(trireme_all_reduce(group, data, 4, kTriremeF32, kTriremeSum, NULL) ==
                 kTriremeInvalidArgument);
  expect_error("in any order");
  trireme_group_free(group);
  /* The group alone has failed. */
  group = group_of_all(world);
  const TriremeStatus first = trireme_barrier(group, NULL);
  TRIREME_EXPECT(first == kTriremeOk || first == kTriremeCancelled); /* a rank may be quicker */
  TRIREME_EXPECT(trireme_group_abort(group, "enough") == kTriremeOk);
  TRIREME_EXPECT(trireme_barrier(group, NULL) == kTriremeCancelled);
  expect_error("has ended group 'all': enough");
  trireme_group_free(group);
  TRIREME_EXPECT_OK(trireme_shutdown(world));
  trireme_world_free(world);
}

/* The last rank's state differs from the others': all are told which. */
void run_hash(const Place* place) {
  TriremeWorld* world = connect_rank(place, 20000);
  TriremeGroup* group = group_of_all(world);
  const int32_t last = place->ranks.count - 1;
  expect_refused(trireme_attach_hash(NULL, 1), "'group' is null");
  TRIREME_EXPECT_OK(trireme_attach_hash(group, 5));
  TRIREME_EXPECT_OK(trireme_barrier(group, NULL));
  TRIREME_EXPECT_OK(trireme_attach_hash(group, place->rank == last ? 6 : 5));
  TRIREME_EXPECT(trireme_barrier(group, NULL) == kTriremeCorruptData);
  if (place->ranks.count > 2) TRIREME_EXPECT(trireme_last_error_peer() == last);
  expect_error("in the hash of their state");
  trireme_group_free(group);
  trireme_world_free(world);
}

/* A barrier that `last` leaves when all others have left it. */
static void leave_last(const Place* place, TriremeGroup* group, int32_t last) {
  char word = 0;
  int32_t size = 0;
  TRIREME_EXPECT_OK(trireme_group_size(group, &size));
  TRIREME_EXPECT_OK(trireme_barrier(group, NULL));
  if (place->rank != last)
    TRIREME_EXPECT_OK(trireme_send(group, last, &word, 1, kTriremeU8, 0, NULL));
  for (int32_t rank = 0; place->rank == last && rank < size; ++rank) {
    if (rank != last) TRIREME_EXPECT_OK(trireme_recv(group, rank, &word, 1, kTriremeU8, 0, NULL));
  }
}

/* Rank 0 gives up while the others wait. */
void run_abort(const Place* place) {
  TriremeWorld* world = connect_rank(place, 20000);
  TriremeGroup* group = group_of_all(world);
  leave_last(place, group, 0);
  if (place->rank == 0) TRIREME_EXPECT_OK(trireme_abort(world, "the disk is full"));
  TriremeWork* work = NULL;
  TriremeStatus status = trireme_barrier(group, &work);
  if (status == kTriremeOk) status = trireme_wait(work, 10000);
  TRIREME_EXPECT(status == kTriremeCancelled);
  expect_error("rank 0 has ended the world: the disk is full");
  TriremeGroup* late = NULL;
  TriremeGroupOptions options = options_named("late");
  void* memory = NULL;
  TRIREME_EXPECT(trireme_group_create(world, &options, &late) == kTriremeCancelled);
  TRIREME_EXPECT(trireme_allocate(group, 64, &memory) == kTriremeCancelled);
  TRIREME_EXPECT(late == NULL && memory == NULL);
  expect_error("the disk is full");
  TRIREME_EXPECT(trireme_last_error_peer() == 0);
  trireme_work_free(work);
  trireme_group_free(group);
  trireme_world_free(world);
}

/* The last rank does not come: the deadline names it. */
void run_late(const Place* place) {
  TriremeWorld* world = connect_rank(place, 20000);
  TriremeGroup* group = NULL;
  TriremeGroupOptions options = options_named("all");
  options.deadline_ms = 300;
  TRIREME_EXPECT_OK(trireme_group_create(world, &options, &group));
  TRIREME_EXPECT_OK(trireme_barrier(group, NULL));
  const int32_t last = place->ranks.count - 1;
  if (place->rank == last) {
    float word = 0;
    TriremeStatus status = kTriremePending; /* of a message that nobody sends */
    TriremeWork* work = NULL;
    expect_refused(trireme_group_set_deadline(group, 0), "must be above 0");
    TRIREME_EXPECT_OK(trireme_group_set_deadline(group, 20000)); /* the others' is over before */
    TRIREME_EXPECT_OK(trireme_recv(group, 0, &word, 1, kTriremeF32, 0, &work));
    TRIREME_EXPECT(trireme_wait(work, 0) == kTriremePending);
    for (int i = 0; i < 200 && status == kTriremePending; ++i) status = trireme_wait(work, 50);
    TRIREME_EXPECT(status == kTriremeTimeout);
    trireme_work_free(work);
  } else {
    TRIREME_EXPECT(trireme_barrier(group, NULL) == kTriremeTimeout);
    TRIREME_EXPECT(trireme_last_error_peer() == last);
  }
  expect_error("waited 300 ms for rank");
  trireme_group_free(group);
  trireme_world_free(world);
}

/* The last rank is killed; the others go on, and regroup once more without a loss. */
void run_regroup(const Place* place) {
  TriremeWorld* world = connect_rank(place, 20000);
  TriremeGroup* group = group_of_all(world);
  const int32_t last = place->ranks.count - 1;
  leave_last(place, group, last);
  expect_refused(trireme_regroup(world, NULL, 0, 1000), "group 'all' is to be freed");
  if (place->rank == last) kill(getpid(), SIGKILL);
  TRIREME_EXPECT(trireme_barrier(group, NULL) == kTriremePeerLost);
  trireme_group_free(group);
  expect_refused(trireme_regroup(world, &last, 1, 1000), "is none of the members");
  expect_refused(trireme_regroup(world, NULL, 0, -1), "'window_ms' is -1");
  for (int round = 0; round < 2; ++round) {
    TRIREME_EXPECT_OK(trireme_regroup(world, NULL, 0, 10000));
    int32_t rank = -1;
    int32_t size = -1;
    int32_t first = -1;
    TRIREME_EXPECT_OK(trireme_rank(world, &rank));
    TRIREME_EXPECT_OK(trireme_world_size(world, &size));
    TRIREME_EXPECT_OK(trireme_first_rank(world, rank, &first));
    TRIREME_EXPECT(rank == place->rank && size == last && first == rank);
    expect_refused(trireme_first_rank(world, size, &first), "no rank");
    group = group_of_all(world);
    int64_t sum = place->rank + 1;
    TRIREME_EXPECT_OK(trireme_all_reduce(group, &sum, 1, kTriremeI64, kTriremeSum, NULL));
    TRIREME_EXPECT(sum == (int64_t)size * (size + 1) / 2);
    leave_last(place, group, 0);
    if (place->rank != 0 && round == 0) { /* rank 0 regroups and does not come */
      TRIREME_EXPECT(trireme_barrier(group, NULL) == kTriremeCancelled);
      expect_error("it regroups");
    }
    trireme_group_free(group);
  }
  TRIREME_EXPECT_OK(trireme_shutdown(world));
  trireme_world_free(world);
}

/* The last rank is killed in the middle of sums. */
void run_loss(const Place* place) {
  enum { kCount = 100000 };
  static float data[kCount];
  TriremeWorld* world = connect_rank(place, 20000);
  TriremeGroup* group = group_of_all(world);
  const int32_t last = place->ranks.count - 1;
  TriremeStatus status = kTriremeOk;
  for (int round = 0; status == kTriremeOk; ++round) {
    if (round == 5 && place->rank == last) kill(getpid(), SIGKILL);
    status = trireme_all_reduce(group, data, kCount, kTriremeF32, kTriremeSum, NULL);
  }
  TRIREME_EXPECT(status == kTriremePeerLost);
  TRIREME_EXPECT(trireme_last_error_peer() == last);
  expect_error("is lost");
  trireme_group_free(group);
  TRIREME_EXPECT(trireme_shutdown(world) == kTriremePeerLost);
  trireme_world_free(world);
}
