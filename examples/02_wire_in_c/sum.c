/* Four processes sum a vector over all of them. */

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "trireme/wire.h"

enum { kNumRanks = 4, kCount = 1000 };

static void check(TriremeStatus status) {
  if (status == kTriremeOk) return;
  fprintf(stderr, "%s\n", trireme_last_error());
  exit(1);
}

static void run_rank(int32_t rank, int32_t store_port) {
  TriremeWorldOptions options;
  check(trireme_world_options(&options, sizeof options));
  options.rank = rank;
  options.world_size = kNumRanks;
  options.store_port = store_port;
  options.serves_store = 0; /* the parent does */
  options.deadline_ms = 20000;

  TriremeWorld* world = NULL;
  TriremeGroup* group = NULL;
  void* memory = NULL;
  check(trireme_connect(&options, &world));
  check(trireme_group_create(world, NULL, &group));
  check(trireme_allocate(group, kCount * (int64_t)sizeof(float), &memory));

  float* data = memory;
  for (int i = 0; i < kCount; ++i) data[i] = (float)(i + rank);
  TriremeWork* work = NULL;
  check(trireme_all_reduce(group, data, kCount, kTriremeF32, kTriremeSum, &work));
  /* Here the rank could compute something else. */
  check(trireme_wait(work, -1));
  trireme_work_free(work);

  for (int i = 0; i < kCount; ++i) {
    if (data[i] != (float)(4 * i + 6)) exit(1);
  }
  printf("rank %d: the sum of element 10 is %g\n", (int)rank, (double)data[10]);
  trireme_group_free(group);
  check(trireme_shutdown(world));
  trireme_world_free(world);
}

int main(void) {
  int ports[2];
  if (pipe(ports) != 0) return 1;
  for (int32_t rank = 0; rank < kNumRanks; ++rank) {
    const pid_t process = fork(); /* before the store has its thread */
    if (process < 0) return 1;
    if (process > 0) continue;
    int32_t port = 0;
    if (read(ports[0], &port, sizeof port) != (ssize_t)sizeof port) exit(1);
    run_rank(rank, port);
    exit(0);
  }
  TriremeStore* store = NULL;
  int32_t port = 0;
  check(trireme_store_serve("127.0.0.1", 0, NULL, &store));
  check(trireme_store_port(store, &port));
  for (int rank = 0; rank < kNumRanks; ++rank) {
    if (write(ports[1], &port, sizeof port) != (ssize_t)sizeof port) return 1;
  }
  int failed = 0;
  int status = 0;
  while (wait(&status) > 0) failed |= status;
  trireme_store_free(store);
  return failed != 0;
}
