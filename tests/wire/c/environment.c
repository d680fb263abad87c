/* Ranks that know their place from the environment. */

#define _POSIX_C_SOURCE 200809L

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/wire/c/ranks.h"

static void set_number(const char* name, int32_t number) {
  char text[16];
  snprintf(text, sizeof text, "%d", (int)number);
  setenv(name, text, 1);
}

static void meet_the_others(const Place* place) {
  TriremeWorld* world = NULL;
  int32_t rank = -1;
  TRIREME_EXPECT_OK(trireme_connect_from_environment(&world));
  TRIREME_EXPECT_OK(trireme_rank(world, &rank));
  TRIREME_EXPECT(rank == place->rank);
  TriremeGroup* group = group_of_all(world);
  TRIREME_EXPECT_OK(trireme_barrier(group, NULL));
  leave(world, group);
}

/* As trireme launch starts them: at its store, with the job's token and no other. */
void run_launched(const Place* place) {
  set_number("TRIREME_RANK", place->rank);
  set_number("TRIREME_WORLD_SIZE", place->ranks.count);
  setenv("TRIREME_STORE_HOST", "127.0.0.1", 1);
  set_number("TRIREME_STORE_PORT", place->store_port);
  set_number("TRIREME_LAUNCHER_PID", (int32_t)getppid());
  setenv("TRIREME_TOKEN", "that of another job", 1);
  TriremeWorld* world = NULL;
  TRIREME_EXPECT(trireme_connect_from_environment(&world) == kTriremeInvalidArgument);
  expect_error("has another token");
  setenv("TRIREME_TOKEN", place->ranks.token, 1);
  meet_the_others(place);
}

/* As mpirun starts them: rank 0 serves the store and says on this host where. */
void run_by_job_id(const Place* place) {
  set_number("OMPI_COMM_WORLD_RANK", place->rank);
  set_number("OMPI_COMM_WORLD_SIZE", place->ranks.count);
  set_number("OMPI_COMM_WORLD_LOCAL_SIZE", place->ranks.count);
  set_number("PMIX_NAMESPACE", (int32_t)getppid());
  meet_the_others(place);
}
