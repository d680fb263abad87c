#include "tests/wire/c/ranks.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kMaxSeconds = 60 };

static int32_t own_rank = -1;

void expect(int condition, const char* text, const char* file, int line) {
  if (condition) return;
  fprintf(stderr, "%s:%d: rank %d: not so: %s\n  last error: %s\n", file, line, (int)own_rank, text,
          trireme_last_error());
  _exit(1);
}

void expect_error(const char* part) {
  if (strstr(trireme_last_error(), part) != NULL) return;
  fprintf(stderr, "rank %d: expected an error with '%s', got: %s\n", (int)own_rank, part,
          trireme_last_error());
  _exit(1);
}

TriremeWorld* connect_rank(const Place* place, int64_t deadline_ms) {
  TriremeWorldOptions options;
  TRIREME_EXPECT_OK(trireme_world_options(&options, sizeof options));
  options.rank = place->rank;
  options.world_size = place->ranks.count;
  options.store_port = place->store_port;
  options.serves_store = 0;
  options.deadline_ms = deadline_ms;
  options.shares_memory = place->ranks.shares_memory;
  options.token = place->ranks.token;
  TriremeWorld* world = NULL;
  TRIREME_EXPECT_OK(trireme_connect(&options, &world));
  return world;
}

TriremeGroup* group_of_all(TriremeWorld* world) {
  TriremeGroup* group = NULL;
  TRIREME_EXPECT_OK(trireme_group_create(world, NULL, &group));
  return group;
}

TriremeGroupOptions options_named(const char* name) {
  TriremeGroupOptions options;
  TRIREME_EXPECT_OK(trireme_group_options(&options, sizeof options));
  options.name = name;
  return options;
}

void leave(TriremeWorld* world, TriremeGroup* group) {
  trireme_group_free(group);
  TRIREME_EXPECT_OK(trireme_shutdown(world));
  trireme_world_free(world);
}

static void run_child(Place place, RankBody body, int ports) {
  own_rank = place.rank;
  alarm(kMaxSeconds); /* a rank that hangs ends by SIGALRM */
  if (read(ports, &place.store_port, sizeof place.store_port) != (ssize_t)sizeof place.store_port) {
    _exit(1);
  }
  body(&place);
  _exit(0);
}

int run_ranks(const Ranks* ranks, RankBody body, int32_t dies) {
  int ports[2];
  pid_t processes[16];
  expect(ranks->count <= 16 && pipe(ports) == 0, "pipe", __FILE__, __LINE__);
  fflush(NULL);
  for (int32_t rank = 0; rank < ranks->count; ++rank) {
    processes[rank] = fork();
    expect(processes[rank] >= 0, "fork", __FILE__, __LINE__);
    if (processes[rank] == 0) {
      const Place place = {.rank = rank, .store_port = 0, .ranks = *ranks};
      run_child(place, body, ports[0]);
    }
  }
  TriremeStore* store = NULL;
  int32_t port = 0;
  TRIREME_EXPECT_OK(trireme_store_serve("127.0.0.1", 0, ranks->token, &store));
  TRIREME_EXPECT_OK(trireme_store_port(store, &port));
  for (int32_t rank = 0; rank < ranks->count; ++rank) {
    expect(write(ports[1], &port, sizeof port) == (ssize_t)sizeof port, "write", __FILE__,
           __LINE__);
  }
  int num_failed = 0;
  for (int32_t rank = 0; rank < ranks->count; ++rank) {
    int status = 0;
    waitpid(processes[rank], &status, 0);
    const int ended_well = rank == dies ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL
                                        : WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!ended_well) fprintf(stderr, "rank %d ended with status %x\n", (int)rank, (unsigned)status);
    num_failed += !ended_well;
  }
  trireme_store_free(store);
  close(ports[0]);
  close(ports[1]);
  return num_failed;
}
