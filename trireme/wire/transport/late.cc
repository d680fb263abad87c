#include "trireme/wire/transport/late.h"

#include <chrono>
#include <optional>

namespace trireme::transport {

std::string ranks_text(std::span<const int> ranks) {
  if (ranks.empty()) return "no rank";
  std::string text;
  for (const int rank : ranks) text += (text.empty() ? "" : ", ") + std::to_string(rank);
  return (ranks.size() == 1 ? "rank " : "ranks ") + text;
}

void give_up(Work& work, Endpoint& endpoint, const Error& late) {
  endpoint.poison(late);
  try {
    work.wait_for(std::chrono::milliseconds::max());  // a group's thread may still have to notice
  } catch (const Error&) {                            // what ended the world, thrown below
  }
  const std::optional<Error> first = endpoint.failure();
  throw Error(first ? *first : late);
}

}  // namespace trireme::transport
