#include "trireme/plan/schedule/schedule_csv.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "trireme/error.h"
#include "trireme/plan/schedule/execution.h"
#include "trireme/plan/schedule/schedule_check.h"

namespace trireme::schedule {
namespace {

constexpr std::size_t kShownColumns = 100;  ///< Characters.

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) + 1 - begin);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(trimmed(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return parts;
}

using Rows = std::vector<std::vector<std::string_view>>;

Rows rows_of(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // Spreadsheets write one.
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  Rows rows;
  for (const std::string_view line : split(text, '\n')) rows.push_back(split(line, ','));
  const auto is_empty = [](std::string_view cell) { return cell.empty(); };
  while (!rows.empty() && std::ranges::all_of(rows.back(), is_empty)) rows.pop_back();
  return rows;
}

/// A place in the table.
struct TableCell {
  std::size_t row = 0;
  std::size_t column = 0;
};

/// The table with a cell underlined; rows that are too long, around it.
std::string show(const Rows& rows, const TableCell& mark) {
  std::size_t width = 2;
  for (const auto& row : rows) {
    for (const std::string_view cell : row)
      width = std::max(width, std::min<std::size_t>(cell.size(), 12));
  }
  const std::size_t num_shown = std::max<std::size_t>(kShownColumns / (width + 1), 1);
  const std::size_t first = mark.column < num_shown ? 0 : mark.column - num_shown / 2;
  std::string text;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::string line = "row " + std::to_string(r + 1) + " |";
    const std::size_t begin = line.size();
    for (std::size_t c = first; c < std::min(first + num_shown, rows[r].size()); ++c) {
      std::string cell(rows[r][c].empty() ? std::string_view(".") : rows[r][c].substr(0, width));
      cell.resize(width, rows[r][c].empty() ? '.' : ' ');
      line += " " + cell;
    }
    text += "\n" + line;
    if (r != mark.row) continue;
    text += "\n" + std::string(begin - 1, ' ') + "|" +
            std::string((mark.column - first) * (width + 1) + 1, ' ') + std::string(width, '^');
  }
  return text;
}

class TableReader {
 public:
  TableReader(std::string_view text, const std::string& origin)
      : rows_(rows_of(text)), origin_(origin) {}

  Schedule read() {
    if (rows_.empty()) fail("it is empty; expected a row of actions for each rank");
    for (const auto& row : rows_) num_cells_ += static_cast<std::int64_t>(row.size());
    schedule_.ranks.resize(rows_.size());
    places_.resize(rows_.size());
    for (std::size_t r = 0; r < rows_.size(); ++r) read_row(r);
    place_stages();
    if (const std::optional<Flaw> flaw = find_flaw(schedule_)) fail(*flaw);
    return std::move(schedule_);
  }

 private:
  void read_row(std::size_t row) {
    for (std::size_t column = 0; column < rows_[row].size(); ++column) {
      if (rows_[row][column].empty()) continue;
      const Action action = read_cell({row, column});
      schedule_.num_stages = std::max(schedule_.num_stages, action.stage + 1);
      schedule_.num_microbatches = std::max(schedule_.num_microbatches, action.microbatch + 1);
      schedule_.ranks[row].push_back(action);
      places_[row].push_back(column);
    }
    if (places_[row].empty()) {
      fail("row " + std::to_string(row + 1) + " has no action; each rank needs a stage");
    }
  }

  Action read_cell(const TableCell& at) const {
    const std::string_view cell = rows_[at.row][at.column];
    Action action;
    try {
      action = parse_action(cell);
    } catch (const Error& error) {
      fail(at, std::string(error.message()) + why_not(cell));
    }
    // Each stage and microbatch has a forward of its own.
    if (std::max(action.stage, action.microbatch) >= num_cells_) {
      fail(at,
           "the table has too few cells for that many stages or microbatches; both count from 0");
    }
    return action;
  }

  /// What such a cell may come from.
  static std::string why_not(std::string_view cell) {
    if (cell.starts_with('(')) return "; write actions that overlap one after another";
    if (cell.find(';') != std::string_view::npos) return "; separate cells by commas";
    const bool is_long =
        std::ranges::count_if(cell, [](char c) { return c >= 'A' && c <= 'Z'; }) > 1;
    if (!is_long) return "";
    return "; messages and gathers are added later: leave them out (format=\"compute_only\")";
  }

  /// A stage is on the rank that has its first action.
  void place_stages() {
    const auto num_ranks = static_cast<int>(rows_.size());
    std::vector<int>& positions = schedule_.positions;
    positions.assign(schedule_.num_stages, -1);
    for (int r = 0; r < num_ranks; ++r) {
      for (const Action& action : schedule_.ranks[r]) {
        if (positions[action.stage] < 0) positions[action.stage] = r;
      }
    }
    const auto missing = std::ranges::find(positions, -1);
    if (missing != positions.end()) {
      fail("no cell has stage " + std::to_string(missing - positions.begin()) + " of the " +
           std::to_string(positions.size()) + "; number stages from 0");
    }
    bool goes_round = true;
    for (int s = 0; s < schedule_.num_stages; ++s) goes_round &= positions[s] == s % num_ranks;
    if (goes_round) positions.clear();
  }

  [[noreturn]] void fail(const Flaw& flaw) const {
    if (!flaw.cell) fail(flaw.problem);
    const std::vector<std::size_t>& columns = places_[flaw.cell->rank];
    const auto index = static_cast<std::size_t>(flaw.cell->index);
    const std::size_t column = index < columns.size() ? columns[index] : columns.back() + 1;
    fail(TableCell{static_cast<std::size_t>(flaw.cell->rank), column}, flaw.problem);
  }

  [[noreturn]] void fail(const TableCell& at, const std::string& problem) const {
    throw Error(ErrorKind::kCorruptData, origin_ + ", row " + std::to_string(at.row + 1) +
                                             ", column " + std::to_string(at.column + 1) + ": " +
                                             problem + show(rows_, at));
  }

  [[noreturn]] void fail(const std::string& problem) const {
    throw Error(ErrorKind::kCorruptData, origin_ + ": " + problem);
  }

  Rows rows_;
  const std::string& origin_;
  std::int64_t num_cells_ = 0;
  Schedule schedule_;
  std::vector<std::vector<std::size_t>> places_;  ///< Columns of each rank's actions.
};

}  // namespace

std::string to_csv(const Schedule& schedule) {
  check(schedule);
  const Execution slots = execute(schedule, {.backward = 1});
  std::string text;
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    std::vector<std::string> row(static_cast<std::size_t>(slots.end()));
    for (std::size_t i = 0; i < schedule.ranks[r].size(); ++i) {
      row[static_cast<std::size_t>(slots.ranks[r][i].begin)] = to_text(schedule.ranks[r][i]);
    }
    for (std::size_t c = 0; c < row.size(); ++c) text += (c == 0 ? "" : ",") + row[c];
    text += "\n";
  }
  return text;
}

Schedule schedule_from_csv(std::string_view text, const std::string& origin) {
  return TableReader(text, origin).read();
}

bool is_csv(const std::filesystem::path& path) { return path.extension() == ".csv"; }

}  // namespace trireme::schedule
