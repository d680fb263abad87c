#include "trireme/plan/schedule/grid.h"

#include <algorithm>

namespace trireme::schedule {
namespace {

/// Where a text stands in a row of characters.
struct Columns {
  std::size_t begin = 0;
  std::size_t size = 0;
};

class GridPrinter {
 public:
  GridPrinter(const Schedule& schedule, const GridOptions& options)
      : schedule_(schedule), options_(options) {
    place_all();
    for (const std::vector<Action>& actions : schedule.ranks) {
      for (const Action& action : actions) unit_ = std::max(unit_, label(action).size());
    }
  }

  std::string print() const {
    std::string text;
    const std::size_t number_width = std::to_string(schedule_.ranks.size()).size();
    for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank) {
      std::string number = std::to_string(rank);
      number.insert(0, number_width - number.size(), ' ');
      const std::string head = "rank " + number;
      text += head + " | " + cut(row(rank)) + "\n";
      if (!options_.mark || options_.mark->rank != static_cast<int>(rank)) continue;
      text += std::string(head.size(), ' ') + " | " + cut(underline()) + "\n";
    }
    return text;
  }

 private:
  /// Times of all actions; those that the execution did not reach follow one another.
  void place_all() {
    spans_ = execute(schedule_, options_.times).ranks;
    for (std::size_t rank = 0; rank < spans_.size(); ++rank) {
      std::vector<Span>& spans = spans_[rank];
      while (spans.size() < schedule_.ranks[rank].size()) {
        const std::int64_t begin = spans.empty() ? 0 : spans.back().end;
        const Action& action = schedule_.ranks[rank][spans.size()];
        spans.push_back({begin, begin + options_.times.of(action.kind)});
      }
      if (!spans.empty()) end_ = std::max(end_, spans.back().end);
    }
  }

  bool is_stage_the_rank() const {
    return schedule_.ranks.size() == static_cast<std::size_t>(schedule_.num_stages);
  }

  std::string label(const Action& action) const {
    const std::string text = to_text(action);
    return is_stage_the_rank() ? text.substr(text.find_first_of("FBIW")) : text;
  }

  Columns columns(const Span& span) const {
    const auto units = static_cast<std::size_t>(span.end - span.begin);
    return {static_cast<std::size_t>(span.begin) * (unit_ + 1), units * (unit_ + 1) - 1};
  }

  std::string row(std::size_t rank) const {
    std::string text;
    for (std::int64_t t = 0; t < end_; ++t) text += std::string(unit_, '.') + " ";
    for (std::size_t i = 0; i < spans_[rank].size(); ++i) {
      const auto [begin, size] = columns(spans_[rank][i]);
      std::string cell = label(schedule_.ranks[rank][i]);
      // Only what takes longer than a unit is drawn through, so that 1F1 does not become 1F1-.
      cell.resize(size, size > unit_ ? '-' : ' ');
      text.replace(begin, size, cell);
    }
    if (!text.empty()) text.pop_back();
    return text;
  }

  Columns marked() const {
    const std::vector<Span>& spans = spans_[options_.mark->rank];
    const auto index = static_cast<std::size_t>(options_.mark->index);
    if (index < spans.size()) return columns(spans[index]);
    return {spans.empty() ? 0 : columns(spans.back()).begin + columns(spans.back()).size + 1,
            unit_};
  }

  std::string underline() const {
    const auto [begin, size] = marked();
    return std::string(begin, ' ') + std::string(std::min(size, unit_), '^');
  }

  /// The part of a row that is shown.
  std::string cut(const std::string& row) const {
    const auto width = static_cast<std::size_t>(options_.max_columns);
    if (width == 0) return row;
    std::size_t begin = 0;
    if (options_.mark && marked().begin + unit_ > width) {
      begin = marked().begin + unit_ - width / 2;
    }
    return begin < row.size() ? row.substr(begin, width) : "";
  }

  const Schedule& schedule_;
  const GridOptions& options_;
  std::vector<std::vector<Span>> spans_;
  std::int64_t end_ = 0;
  std::size_t unit_ = 2;  ///< Characters of one unit of time, without the space after it.
};

}  // namespace

std::string grid(const Schedule& schedule, const GridOptions& options) {
  return GridPrinter(schedule, options).print();
}

}  // namespace trireme::schedule
