/* Every operation, blocking and not, of small and large buffers. */

#include <stdlib.h>
#include <string.h>

#include "tests/wire/c/ranks.h"

enum { kMaxRanks = 16 };

static const int64_t kCounts[] = {0, 1, 3, 1000, 300001};
enum { kNumCounts = sizeof kCounts / sizeof kCounts[0] };

static void* buffer(int64_t bytes) {
  void* memory = calloc(bytes > 0 ? (size_t)bytes : 1, 1);
  TRIREME_EXPECT(memory != NULL);
  return memory;
}

/* Sum over ranks of i + rank. */
static double sum_at(int64_t i, int32_t size) {
  return (double)i * size + (double)(size - 1) * size / 2;
}

static void fill(double* data, int64_t count, int32_t rank) {
  for (int64_t i = 0; i < count; ++i) data[i] = (double)i + rank;
}

static void all_reduce(TriremeGroup* group, const Place* place, int64_t count) {
  double* data = buffer(count * 8);
  fill(data, count, place->rank);
  TRIREME_EXPECT_OK(trireme_all_reduce(group, data, count, kTriremeF64, kTriremeSum, NULL));
  for (int64_t i = 0; i < count; ++i) TRIREME_EXPECT(data[i] == sum_at(i, place->ranks.count));
  fill(data, count, place->rank);
  TriremeWork* work = NULL;
  TRIREME_EXPECT_OK(trireme_all_reduce(group, data, count, kTriremeF64, kTriremeMax, &work));
  TriremeStatus status = kTriremePending;
  while (status == kTriremePending) status = trireme_wait(work, 1);
  TRIREME_EXPECT(status == kTriremeOk);
  TRIREME_EXPECT_OK(trireme_wait(work, 0)); /* again */
  trireme_work_free(work);
  for (int64_t i = 0; i < count; ++i)
    TRIREME_EXPECT(data[i] == (double)(i + place->ranks.count - 1));
  free(data);
}

static void reduce(TriremeGroup* group, const Place* place, int64_t count) {
  const int32_t root = place->ranks.count - 1;
  double* data = buffer(count * 8);
  fill(data, count, place->rank);
  TRIREME_EXPECT_OK(trireme_reduce(group, data, count, kTriremeF64, kTriremeSum, root, NULL));
  for (int64_t i = 0; i < count; ++i) {
    const double own = (double)(i + place->rank);
    TRIREME_EXPECT(data[i] == (place->rank == root ? sum_at(i, place->ranks.count) : own));
  }
  free(data);
}

/* Rank i owns count + i elements. */
static void reduce_scatter_and_gather(TriremeGroup* group, const Place* place, int64_t count) {
  int64_t counts[kMaxRanks];
  int64_t bytes[kMaxRanks];
  int64_t begin = 0;
  int64_t total = 0;
  for (int32_t i = 0; i < place->ranks.count; ++i) {
    counts[i] = count + i;
    bytes[i] = counts[i] * 8;
    if (i < place->rank) begin += counts[i];
    total += counts[i];
  }
  double* data = buffer(total * 8);
  double* all = buffer(total * 8);
  fill(data, total, place->rank);
  TRIREME_EXPECT_OK(trireme_reduce_scatter(group, data, counts, kTriremeF64, kTriremeSum, NULL));
  TRIREME_EXPECT_OK(trireme_all_gather(group, data + begin, all, bytes, NULL));
  for (int64_t i = 0; i < total; ++i) TRIREME_EXPECT(all[i] == sum_at(i, place->ranks.count));
  free(data);
  free(all);
}

static void broadcast(TriremeGroup* group, const Place* place, int64_t bytes) {
  for (int32_t root = 0; root < place->ranks.count; ++root) {
    unsigned char* data = buffer(bytes);
    memset(data, place->rank, (size_t)bytes);
    TRIREME_EXPECT_OK(trireme_broadcast(group, data, bytes, root, NULL));
    for (int64_t i = 0; i < bytes; ++i) TRIREME_EXPECT(data[i] == root);
    free(data);
  }
}

/* Rank a gives rank b `count + a` numbers a * 100 + b. */
static void all_to_all(TriremeGroup* group, const Place* place, int64_t count) {
  const int32_t size = place->ranks.count;
  int64_t send_bytes[kMaxRanks];
  int64_t recv_bytes[kMaxRanks];
  int64_t total = 0;
  for (int32_t i = 0; i < size; ++i) {
    send_bytes[i] = (count + place->rank) * 4;
    recv_bytes[i] = (count + i) * 4;
    total += count + i;
  }
  int32_t* send = buffer((count + place->rank) * size * 4);
  int32_t* recv = buffer(total * 4);
  for (int64_t i = 0; i < (count + place->rank) * size; ++i) {
    send[i] = place->rank * 100 + (int32_t)(i / (count + place->rank));
  }
  TRIREME_EXPECT_OK(trireme_all_to_all(group, send, send_bytes, recv, recv_bytes, NULL));
  int64_t at = 0;
  for (int32_t from = 0; from < size; ++from) {
    for (int64_t i = 0; i < count + from; ++i) {
      TRIREME_EXPECT(recv[at++] == from * 100 + place->rank);
    }
  }
  free(send);
  free(recv);
}

static void gather_and_scatter(TriremeGroup* group, const Place* place, int64_t bytes) {
  const int32_t root = 1;
  const int is_root = place->rank == root;
  unsigned char* mine = buffer(bytes);
  unsigned char* all = is_root ? buffer(bytes * place->ranks.count) : NULL;
  memset(mine, place->rank + 1, (size_t)bytes);
  TRIREME_EXPECT_OK(trireme_gather(group, mine, bytes, all, root, NULL));
  for (int64_t i = 0; is_root && i < bytes * place->ranks.count; ++i) {
    TRIREME_EXPECT(all[i] == i / bytes + 1);
    all[i] += 10;
  }
  TRIREME_EXPECT_OK(trireme_scatter(group, all, mine, bytes, root, NULL));
  for (int64_t i = 0; i < bytes; ++i) TRIREME_EXPECT(mine[i] == place->rank + 11);
  free(mine);
  free(all);
}

/* Each to its right neighbour, from its left one. */
static void messages(TriremeGroup* group, const Place* place, int64_t bytes) {
  const int32_t size = place->ranks.count;
  const int32_t left = (place->rank + size - 1) % size;
  unsigned char* out = buffer(bytes);
  unsigned char* in = buffer(bytes);
  memset(out, place->rank + 1, (size_t)bytes);
  TriremeWork* sent = NULL;
  TRIREME_EXPECT_OK(
      trireme_send(group, (place->rank + 1) % size, out, bytes, kTriremeU8, 0, &sent));
  TRIREME_EXPECT_OK(trireme_recv(group, left, in, bytes, kTriremeU8, 0, NULL));
  TRIREME_EXPECT_OK(trireme_wait(sent, -1));
  trireme_work_free(sent);
  for (int64_t i = 0; i < bytes; ++i) TRIREME_EXPECT(in[i] == left + 1);
  free(out);
  free(in);
}

/* All others to rank 0, in two tags of which it takes the second first; from whoever comes. */
static void messages_by_tag(TriremeGroup* group, const Place* place) {
  const int32_t size = place->ranks.count;
  float numbers[2] = {(float)place->rank, -(float)place->rank};
  if (place->rank != 0) {
    TRIREME_EXPECT_OK(trireme_send(group, 0, &numbers[0], 1, kTriremeF32, 1, NULL));
    TRIREME_EXPECT_OK(trireme_send(group, 0, &numbers[1], 1, kTriremeF32, 2, NULL));
    return;
  }
  for (uint64_t tag = 2; tag > 0; --tag) {
    for (int32_t i = 1; i < size; ++i) {
      TriremeWork* work = NULL;
      int32_t source = -1;
      int64_t bytes = 0;
      TRIREME_EXPECT_OK(
          trireme_recv_up_to(group, kTriremeAnySource, numbers, 2, kTriremeF32, tag, &work));
      TRIREME_EXPECT_OK(trireme_wait(work, -1));
      TRIREME_EXPECT_OK(trireme_received(work, &source, &bytes));
      TRIREME_EXPECT(bytes == 4 && source > 0 && source < size);
      TRIREME_EXPECT(numbers[0] == (float)(tag == 1 ? source : -source));
      trireme_work_free(work);
    }
  }
}

static void withdrawn_recv(TriremeGroup* group, const Place* place) {
  int32_t number = 0;
  int32_t is_cancelled = 0;
  TriremeWork* work = NULL;
  TRIREME_EXPECT_OK(trireme_recv(group, place->rank, &number, 1, kTriremeI32, 9, &work));
  TRIREME_EXPECT_OK(trireme_cancel(work, &is_cancelled));
  TRIREME_EXPECT(is_cancelled == 1 && trireme_wait(work, -1) == kTriremeCancelled);
  trireme_work_free(work);
}

static void registered_memory(TriremeGroup* group, const Place* place) {
  enum { kCount = 200000 };
  void* memory = NULL;
  TRIREME_EXPECT_OK(trireme_allocate(group, kCount * (int64_t)sizeof(float), &memory));
  float* data = memory;
  for (int i = 0; i < kCount; ++i) {
    TRIREME_EXPECT(data[i] == 0);
    data[i] = (float)place->rank;
  }
  TRIREME_EXPECT_OK(trireme_all_reduce(group, data, kCount, kTriremeF32, kTriremeAverage, NULL));
  for (int i = 0; i < kCount; ++i) TRIREME_EXPECT(data[i] == (float)(place->ranks.count - 1) / 2);
}

static void reductions_and_types(TriremeGroup* group, const Place* place) {
  int64_t number = (int64_t)1 << place->rank;
  TRIREME_EXPECT_OK(trireme_all_reduce(group, &number, 1, kTriremeI64, kTriremeOr, NULL));
  TRIREME_EXPECT(number == ((int64_t)1 << place->ranks.count) - 1);
  int32_t product = 2;
  TRIREME_EXPECT_OK(trireme_all_reduce(group, &product, 1, kTriremeI32, kTriremeProduct, NULL));
  TRIREME_EXPECT(product == 1 << place->ranks.count);
  uint8_t small = (uint8_t)(place->rank + 5);
  TRIREME_EXPECT_OK(trireme_all_reduce(group, &small, 1, kTriremeU8, kTriremeMin, NULL));
  TRIREME_EXPECT(small == 5);
  uint16_t half = 0x3c00; /* 1 in f16 */
  TRIREME_EXPECT_OK(trireme_all_reduce(group, &half, 1, kTriremeF16, kTriremeSum, NULL));
  TRIREME_EXPECT(half == (place->ranks.count == 2 ? 0x4000 : 0x4400));
  uint16_t brain = 0x3f80; /* 1 in bf16 */
  TRIREME_EXPECT_OK(trireme_all_reduce(group, &brain, 1, kTriremeBf16, kTriremeSum, NULL));
  TRIREME_EXPECT(brain == (place->ranks.count == 2 ? 0x4000 : 0x4080));
}

/* Rank i counts i + 1 times, as a share of all. */
static void weighted_averages(TriremeGroup* group, const Place* place) {
  const int32_t size = place->ranks.count;
  const double share = (place->rank + 1) / (size * (size + 1) / 2.0);
  double expected = 0;
  for (int32_t i = 0; i < size; ++i) expected += (i + 1) / (size * (size + 1) / 2.0) * i;
  double data[16];
  int64_t counts[kMaxRanks];
  for (int32_t i = 0; i < kMaxRanks; ++i) counts[i] = i < size ? 1 : 0;
  for (int32_t i = 0; i < 16; ++i) data[i] = place->rank;
  TRIREME_EXPECT_OK(trireme_all_reduce_scaled(group, data, 16, kTriremeF64, share, NULL));
  TRIREME_EXPECT(data[0] > expected - 1e-12 && data[15] < expected + 1e-12);
  for (int32_t i = 0; i < 16; ++i) data[i] = place->rank;
  TRIREME_EXPECT_OK(trireme_reduce_scaled(group, data, 16, kTriremeF64, share, 0, NULL));
  const double root = place->rank == 0 ? expected : place->rank;
  TRIREME_EXPECT(data[0] > root - 1e-12 && data[15] < root + 1e-12);
  for (int32_t i = 0; i < 16; ++i) data[i] = place->rank;
  TRIREME_EXPECT_OK(trireme_reduce_scatter_scaled(group, data, counts, kTriremeF64, share, NULL));
  TRIREME_EXPECT(data[place->rank] > expected - 1e-12 && data[place->rank] < expected + 1e-12);
}

/* A group of the last two ranks, in reverse order. */
static void smaller_group(TriremeWorld* world, const Place* place) {
  const int32_t last = place->ranks.count - 1;
  if (place->rank < last - 1) return;
  const int32_t members[] = {last, last - 1};
  TriremeGroup* pair = NULL;
  TriremeGroupOptions options = options_named("pair");
  options.ranks = members;
  options.num_ranks = 2;
  TRIREME_EXPECT_OK(trireme_group_create(world, &options, &pair));
  int32_t rank = -1;
  int32_t size = 0;
  TRIREME_EXPECT_OK(trireme_group_rank(pair, &rank));
  TRIREME_EXPECT_OK(trireme_group_size(pair, &size));
  TRIREME_EXPECT(rank == last - place->rank && size == 2);
  int32_t word = place->rank;
  TRIREME_EXPECT_OK(trireme_broadcast(pair, &word, 4, 0, NULL));
  TRIREME_EXPECT(word == last);
  trireme_group_free(pair);
}

/* The last rank sums for the others, by an algorithm that has a part for it. */
static void reducers(TriremeWorld* world, const Place* place) {
  if (place->ranks.count < 3) return;
  const int32_t last = place->ranks.count - 1;
  TriremeGroup* group = NULL;
  TriremeGroupOptions options = options_named("with a reducer");
  options.num_reducers = 1;
  options.algorithm = "two_hop";
  TRIREME_EXPECT_OK(trireme_group_create(world, &options, &group));
  double data[100];
  fill(data, 100, place->rank);
  TRIREME_EXPECT_OK(trireme_all_reduce(group, data, 100, kTriremeF64, kTriremeSum, NULL));
  for (int64_t i = 0; i < 100; ++i) {
    const double own = (double)(i + place->rank);
    TRIREME_EXPECT(data[i] == (place->rank == last ? own : sum_at(i, last)));
  }
  TRIREME_EXPECT(trireme_reduce(group, data, 100, kTriremeF64, kTriremeSum, 0, NULL) ==
                 kTriremeInvalidArgument);
  expect_error("with reducers");
  trireme_group_free(group);
}

/* What the order is left to must still be right. */
static void any_order(TriremeWorld* world, const Place* place) {
  TriremeGroup* group = NULL;
  TriremeGroupOptions options = options_named("in any order");
  options.any_order = 1;
  options.algorithm = "ring";
  TRIREME_EXPECT_OK(trireme_group_create(world, &options, &group));
  double data[100];
  fill(data, 100, place->rank);
  TRIREME_EXPECT_OK(trireme_all_reduce(group, data, 100, kTriremeF64, kTriremeSum, NULL));
  for (int64_t i = 0; i < 100; ++i) TRIREME_EXPECT(data[i] == sum_at(i, place->ranks.count));
  trireme_group_free(group);
}

void run_operations(const Place* place) {
  TriremeWorld* world = connect_rank(place, 20000);
  int32_t rank = -1;
  int32_t size = 0;
  TRIREME_EXPECT_OK(trireme_rank(world, &rank));
  TRIREME_EXPECT_OK(trireme_world_size(world, &size));
  TRIREME_EXPECT(rank == place->rank && size == place->ranks.count);
  TriremeGroup* group = group_of_all(world);
  for (int i = 0; i < kNumCounts; ++i) {
    all_reduce(group, place, kCounts[i]);
    reduce(group, place, kCounts[i]);
    reduce_scatter_and_gather(group, place, kCounts[i]);
    broadcast(group, place, kCounts[i]);
    all_to_all(group, place, kCounts[i]);
    gather_and_scatter(group, place, kCounts[i]);
    messages(group, place, kCounts[i]);
    TRIREME_EXPECT_OK(trireme_barrier(group, NULL));
  }
  messages_by_tag(group, place);
  withdrawn_recv(group, place);
  registered_memory(group, place);
  reductions_and_types(group, place);
  weighted_averages(group, place);
  smaller_group(world, place);
  reducers(world, place);
  any_order(world, place);
  leave(world, group);
}
