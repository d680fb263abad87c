#include "recipes/ssd/batch_planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

#include "trireme/error.h"

namespace trireme::recipes::ssd {
namespace {

constexpr std::array<std::pair<std::int64_t, double>, 4> kEpochs = {
    {{1024, 50}, {2048, 65}, {3072, 75}, {4096, 90}}};

[[noreturn]] void refuse_batches(const std::string& problem) {
  throw Error(ErrorKind::kInvalidArgument, "batches of SSD: " + problem);
}

/// All of the text, or it is refused.
template <typename Number>
Number number_of(std::string_view text, const std::string& whole) {
  Number number = 0;
  const auto [end, failure] = std::from_chars(text.begin(), text.end(), number);
  if (failure == std::errc() && end == text.end()) return number;
  refuse_batches("'" + whole + "' has '" + std::string(text) +
                 "'; give batches with milliseconds of a step, 1024=310,2048=560.5");
}

}  // namespace

double epochs_of(std::int64_t batch) {
  if (batch < 1 || batch > kEpochs.back().first) {
    refuse_batches(fmt::format("how many epochs one of {} images trains is known from 1 to {}",
                               batch, kEpochs.back().first));
  }
  if (batch <= kEpochs.front().first) return kEpochs.front().second;
  const auto* const above =
      std::ranges::find_if(kEpochs, [&](const auto& known) { return known.first >= batch; });
  const auto& [low, low_epochs] = *std::prev(above);
  const auto& [high, high_epochs] = *above;
  const double part = static_cast<double>(batch - low) / static_cast<double>(high - low);
  return low_epochs + part * (high_epochs - low_epochs);
}

std::vector<BatchChoice> compare_batches(std::int64_t num_images,
                                         std::span<const BatchTime> times) {
  if (num_images < 1 || times.empty()) refuse_batches("give images and one batch at least");
  std::vector<BatchChoice> choices;
  for (const auto& [batch, step_seconds] : times) {
    const double epochs = epochs_of(batch);
    if (!(step_seconds > 0 && std::isfinite(step_seconds)))
      refuse_batches(fmt::format("a step of {} images takes {} s", batch, step_seconds));
    const std::int64_t of_epoch = (num_images + batch - 1) / batch;
    const auto steps = std::llround(std::ceil(epochs * static_cast<double>(of_epoch)));
    choices.push_back({batch, epochs, steps, static_cast<double>(steps) * step_seconds});
  }
  std::ranges::sort(choices, {}, [](const BatchChoice& choice) {
    return std::pair(choice.seconds, choice.batch);
  });
  return choices;
}

std::vector<BatchTime> parse_batch_times(const std::string& text) {
  std::vector<BatchTime> times;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view one = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(one.size() + 1, rest.size()));
    const std::size_t middle = std::min(one.find('='), one.size());
    const std::string_view time = one.substr(std::min(middle + 1, one.size()));
    times.push_back({number_of<std::int64_t>(one.substr(0, middle), text),
                     number_of<double>(time, text) / 1e3});
  }
  return times;
}

std::string to_table(std::int64_t num_images, std::span<const BatchChoice> choices) {
  std::string table = fmt::format(
      "{} images, to the AP of MLPerf's SSD; the shortest training first\n"
      "batch  epochs    steps  step ms    hours\n",
      num_images);
  for (const auto& [batch, epochs, steps, seconds] : choices) {
    table += fmt::format("{:5}  {:6.1f}  {:7}  {:7.1f}  {:7.2f}\n", batch, epochs, steps,
                         seconds / static_cast<double>(steps) * 1e3, seconds / 3600);
  }
  return table;
}

}  // namespace trireme::recipes::ssd
