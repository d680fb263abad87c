#include "packs/ranking/metrics/group_counts.h"

#include "trireme/wire/endpoint/watch.h"

namespace trireme::ranking {

void GroupCounts::sum(std::span<std::uint64_t> counts) {
  // Sums of i64 have the bits of those of u64.
  const auto work = group_.all_reduce({std::as_writable_bytes(counts), Dtype::kI64});
  transport::await(collectives::group_work(*work, group_), {.deadline = group_.deadline()},
                   {.rank = group_.endpoint().rank(), .operation = "sum counts"});
}

}  // namespace trireme::ranking
