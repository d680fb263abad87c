/* Every function of wire.h, in processes that are compiled as C.
 *
 *   trireme_wire_c_operations NUM_RANKS shm|tcp */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/wire/c/ranks.h"

typedef struct Case {
  const char* name;
  RankBody body;
  int32_t dies; /* Counted from the last rank; 0: none. */
  const char* token;
} Case;

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: %s NUM_RANKS shm|tcp\n", argv[0]);
    return 2;
  }
  Ranks ranks = {.count = atoi(argv[1]), .shares_memory = strcmp(argv[2], "shm") == 0};
  const Case cases[] = {{"operations", run_operations, 0, "secret"},
                        {"mistakes", run_mistakes, 0, NULL},
                        {"mismatch", run_mismatch, 0, NULL},
                        {"other order", run_other_order, 0, NULL},
                        {"hash", run_hash, 0, NULL},
                        {"abort", run_abort, 0, NULL},
                        {"late", run_late, 0, NULL},
                        {"loss", run_loss, 1, NULL},
                        {"regroup", run_regroup, 1, NULL},
                        {"launched", run_launched, 0, "secret"},
                        {"by job id", run_by_job_id, 0, NULL}};
  int num_failed = 0;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    const int32_t dies = cases[i].dies > 0 ? ranks.count - cases[i].dies : -1;
    ranks.token = cases[i].token;
    const int failed = run_ranks(&ranks, cases[i].body, dies);
    printf("%s: %s\n", cases[i].name, failed == 0 ? "passed" : "FAILED");
    num_failed += failed;
  }
  return num_failed == 0 ? 0 : 1;
}
