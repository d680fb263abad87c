#include "trireme/wire/transport/late.h"

#include <chrono>

namespace trireme::transport {

std::string ranks_text(std::span<const int> ranks) {
  if (ranks.empty()) return "no rank";
  std::string text;
  for (const int rank : ranks) text += (text.empty() ? "" : ", ") + std::to_string(rank);
  return (ranks.size() == 1 ? "rank " : "ranks ") + text;
}

void give_up(Work& work, Endpoint& endpoint, const Error& late) {
  endpoint.poison(late);
  // A group's thread may still have to notice. The work throws, unless it has just ended well.
  work.wait_for(std::chrono::milliseconds::max());
  throw Error(endpoint.failure().value_or(late));
}

}  // namespace trireme::transport
