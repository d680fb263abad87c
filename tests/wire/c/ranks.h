#pragma once

/* Ranks of a test as processes, and expectations that say where they failed. */

#include <stdint.h>

#include "trireme/wire.h"

typedef struct Ranks {
  int32_t count;
  int shares_memory;
  const char* token; /* Of the store; null: the usual one. */
} Ranks;

/* One rank's place, as its process sees it. */
typedef struct Place {
  int32_t rank;
  int32_t store_port;
  Ranks ranks;
} Place;

typedef void (*RankBody)(const Place* place);

/* Runs `body` in so many processes, which meet at a store that this one serves; returns how many of
 * them failed. Must be called before this process has threads. dies: a rank that ends by SIGKILL;
 * -1 for none. */
int run_ranks(const Ranks* ranks, RankBody body, int32_t dies);

/* Connects and makes one group of all ranks. */
TriremeWorld* connect_rank(const Place* place, int64_t deadline_ms);
TriremeGroup* group_of_all(TriremeWorld* world);

/* The defaults under another name. */
TriremeGroupOptions options_named(const char* name);

/* Frees the group and ends the world in good order. */
void leave(TriremeWorld* world, TriremeGroup* group);

/* Ends the process, with the place and what is known, where `condition` is not so. */
void expect(int condition, const char* text, const char* file, int line);

#define TRIREME_EXPECT(condition) expect((condition) != 0, #condition, __FILE__, __LINE__)
#define TRIREME_EXPECT_OK(call) TRIREME_EXPECT((call) == kTriremeOk)

/* That the last error's text has `part` in it. */
void expect_error(const char* part);

void run_operations(const Place* place);
void run_mistakes(const Place* place);
void run_mismatch(const Place* place);
void run_other_order(const Place* place);
void run_hash(const Place* place);
void run_abort(const Place* place);
void run_late(const Place* place);
void run_loss(const Place* place);
void run_regroup(const Place* place);
void run_launched(const Place* place);
void run_by_job_id(const Place* place);
