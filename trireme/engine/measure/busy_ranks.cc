#include "trireme/engine/measure/busy_ranks.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

#include "trireme/engine/measure/repeats.h"
#include "trireme/error.h"

namespace trireme::measure {
namespace {

template <typename T>
std::span<std::byte> bytes_of(std::vector<T>& items) {
  return std::as_writable_bytes(std::span(items));
}

}  // namespace

void BusyRanks::wait(const transport::WorkPtr& work, const char* operation) const {
  transport::await(collectives::group_work(*work, *group_), watch_,
                   {.rank = group_->endpoint().rank(), .operation = operation});
}

void BusyRanks::barrier() const {
  if (group_ != nullptr) wait(group_->barrier(), "barrier of the profile");
}

std::vector<double> BusyRanks::medians(const std::vector<double>& mine) const {
  if (num_ranks() == 1 || mine.empty()) return mine;
  std::vector<double> all(mine.size() * static_cast<std::size_t>(num_ranks()));
  wait(group_->all_gather(std::as_bytes(std::span(mine)), bytes_of(all)), "times of the profile");
  std::vector<double> result;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    std::vector<double> numbers;
    for (std::size_t k = i; k < all.size(); k += mine.size()) numbers.push_back(all[k]);
    result.push_back(median(std::move(numbers)));
  }
  return result;
}

std::vector<double> BusyRanks::from(int rank, std::vector<double> mine) const {
  if (num_ranks() > 1) wait(group_->broadcast(bytes_of(mine), rank), "times of a rank");
  return mine;
}

std::vector<std::string> BusyRanks::gather(const std::string& mine) const {
  if (num_ranks() == 1) return {mine};
  const auto num = static_cast<std::size_t>(num_ranks());
  const std::vector<std::uint64_t> size = {mine.size()};
  std::vector<std::uint64_t> sizes(num);
  wait(group_->all_gather(std::as_bytes(std::span(size)), bytes_of(sizes)), "sizes of texts");
  const std::size_t room = *std::max_element(sizes.begin(), sizes.end());
  std::vector<char> padded(mine.begin(), mine.end()), all(room * num);
  padded.resize(room);
  wait(group_->all_gather(std::as_bytes(std::span(padded)), bytes_of(all)), "texts");
  std::vector<std::string> result;
  for (std::size_t r = 0; r < num; ++r) {
    result.emplace_back(all.data() + r * room, static_cast<std::size_t>(sizes[r]));
  }
  return result;
}

}  // namespace trireme::measure
