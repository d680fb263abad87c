#include "trireme/session/processors.h"

#include <fmt/format.h>

#include <vector>

#include "trireme/engine/memory/process_memory.h"
#include "trireme/engine/memory/process_threads.h"
#include "trireme/engine/memory/torch_threads.h"
#include "trireme/error.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/wire/system/thread.h"

namespace trireme::session {

void use_threads(int num_threads) {
  if (num_threads < 1 || num_threads > memory::kMostThreads) {
    throw Error(
        ErrorKind::kInvalidArgument,
        fmt::format("--threads is {}; give the threads that each rank computes with, 1 to {}",
                    num_threads, memory::kMostThreads));
  }
  memory::apply_torch_settings(num_threads);
  const std::vector<int> cores = transport::retake_cores(num_threads);
  if (cores.size() < 2) return;
  // Torch's threads may be there already, bound as this one was before.
  memory::on_torch_threads(num_threads, [&](auto) { transport::bind_to_cores(cores); });
}

int threads_of(const std::optional<Plan>& plan, const PlanOptions& planning) {
  return plan ? plan->value().threads : planning.threads;
}

}  // namespace trireme::session
