#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "trireme/plan/schedule/action.h"

namespace trireme::schedule {

/// A schedule as a table for people and spreadsheets: a row for each rank, a column for each slot, in each cell an action
/// or, where the rank waits, nothing. 1F1B of two stages and three microbatches:
///
///     0F0,0F1,,0B0,0F2,0B1,,0B2
///     ,1F0,1B0,1F1,1B1,1F2,1B2,
///
/// It is what torch.distributed.pipelining reads and writes (`_load_csv`, `_dump_csv` of its schedules with several stages
/// a rank, format="compute_only").
///
/// schedule   one that passes `check`. A slot is a unit of time in which any action runs.
std::string to_csv(const Schedule& schedule);

/// Inverse of `to_csv`; which stage is on which rank, and how many microbatches there are, follows from the cells. Columns
/// need not be as `to_csv` has them: order in a row is all that counts.
///
/// origin   of the text, for errors.
/// Errors   kCorruptData where a cell is no action, rows and stages do not fit, or the schedule breaks a rule of `check`:
///          row and column of the cell, counted from 1, and the table with that cell marked.
Schedule schedule_from_csv(std::string_view text, const std::string& origin);

/// Whether a path names such a file: it ends with `.csv`.
bool is_csv(const std::filesystem::path& path);

}  // namespace trireme::schedule
