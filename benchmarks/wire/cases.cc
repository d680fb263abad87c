#include "benchmarks/wire/cases.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "trireme/error.h"

namespace trireme::bench {
namespace {

constexpr std::array kOperations = {Collective::kAllReduce, Collective::kReduceScatter,
                                    Collective::kAllGather, Collective::kAllToAll,
                                    Collective::kBroadcast, Collective::kBarrier};
constexpr std::array<std::pair<std::string_view, std::int64_t>, 4> kUnits = {
    {{"GiB", std::int64_t{1} << 30},
     {"MiB", std::int64_t{1} << 20},
     {"KiB", std::int64_t{1} << 10},
     {"B", 1}}};
constexpr std::int64_t kMaxBytes = std::int64_t{16} << 30;
constexpr int kSweepFactor = 4;

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t end = 0; end != std::string_view::npos; text.remove_prefix(end + 1)) {
    end = text.find(',');
    words.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
  }
  return words;
}

std::int64_t parse_size(std::string_view word) {
  std::string_view digits = word;
  std::int64_t unit = 1;
  for (const auto& [name, bytes] : kUnits) {
    if (!digits.ends_with(name)) continue;
    digits.remove_suffix(name.size());
    unit = bytes;
    break;
  }
  std::int64_t number = 0;
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (status != std::errc{} || end != digits.data() + digits.size() || number < 1 ||
      number > kMaxBytes / unit) {
    throw Error(ErrorKind::kInvalidArgument,
                "'" + std::string(word) +
                    "' is no size from 1 B to 16 GiB; write 4..256MiB or a list as 4,64KiB,1MiB");
  }
  return number * unit;
}

std::int64_t rounded(std::int64_t bytes, Collective operation, const CaseOptions& options) {
  const auto element = static_cast<std::int64_t>(size_bytes(options.dtype));
  const std::int64_t unit = has_parts(operation) ? element * options.num_ranks : element;
  return std::max<std::int64_t>(bytes / unit, 1) * unit;
}

}  // namespace

bool has_parts(Collective operation) {
  return operation == Collective::kReduceScatter || operation == Collective::kAllGather ||
         operation == Collective::kAllToAll;
}

bool is_same_everywhere(Collective operation) {
  return operation == Collective::kAllReduce || operation == Collective::kAllGather ||
         operation == Collective::kBroadcast;
}

std::span<const Collective> known_operations() { return kOperations; }

std::vector<Collective> parse_operations(std::string_view text) {
  std::vector<Collective> result;
  for (const std::string_view word : split(text)) {
    const auto* found = std::ranges::find_if(
        kOperations, [&](Collective operation) { return to_text(operation) == word; });
    if (found == kOperations.end()) {
      std::string known;
      for (const Collective operation : kOperations) {
        known += (known.empty() ? "" : ", ") + std::string(to_text(operation));
      }
      throw Error(ErrorKind::kInvalidArgument,
                  "'" + std::string(word) + "' is no operation; there are " + known);
    }
    result.push_back(*found);
  }
  return result;
}

std::vector<std::int64_t> parse_sizes(std::string_view text) {
  std::vector<std::int64_t> sizes;
  const std::size_t dots = text.find("..");
  if (dots != std::string_view::npos) {
    const std::int64_t last = parse_size(text.substr(dots + 2));
    for (std::int64_t size = parse_size(text.substr(0, dots)); size < last; size *= kSweepFactor) {
      sizes.push_back(size);
    }
    sizes.push_back(last);
    return sizes;
  }
  for (const std::string_view word : split(text)) sizes.push_back(parse_size(word));
  return sizes;
}

std::vector<Case> make_cases(const CaseOptions& options) {
  std::vector<Case> cases;
  for (const Collective operation : options.operations) {
    for (const std::int64_t size : options.sizes) {
      const bool has_data = operation != Collective::kBarrier;
      const Case one{.operation = operation,
                     .bytes = has_data ? rounded(size, operation, options) : 0,
                     .dtype = options.dtype,
                     .is_registered = options.is_registered};
      if (std::ranges::find(cases, one) == cases.end()) cases.push_back(one);
    }
  }
  return cases;
}

int iterations_for(std::int64_t bytes) {
  constexpr std::int64_t kBytesOfBatch = std::int64_t{512} << 20;
  constexpr std::int64_t kFewest = 4;
  constexpr std::int64_t kMost = 400;
  return static_cast<int>(
      std::clamp(kBytesOfBatch / std::max<std::int64_t>(bytes, 1), kFewest, kMost));
}

double bus_factor(Collective operation, int num_ranks) {
  const double others = static_cast<double>(num_ranks - 1) / num_ranks;
  if (operation == Collective::kAllReduce) return 2 * others;
  if (has_parts(operation)) return others;
  return operation == Collective::kBarrier ? 0 : 1;
}

std::string size_text(std::int64_t bytes) {
  for (const auto& [name, unit] : kUnits) {
    if (bytes >= unit && bytes % unit == 0) {
      return std::to_string(bytes / unit) + " " + std::string(name);
    }
  }
  return "0 B";
}

}  // namespace trireme::bench
