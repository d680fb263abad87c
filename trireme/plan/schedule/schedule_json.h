#pragma once

#include <filesystem>
#include <string>

#include "trireme/base/document.h"
#include "trireme/plan/schedule/action.h"
#include "trireme/plan/schedule/step_program.h"

namespace trireme::schedule {

inline constexpr DocumentKind kScheduleDocument{"trireme.schedule", 1};
inline constexpr DocumentKind kStepProgramDocument{"trireme.step_program", 1};

/// The bodies of the documents (docs/formats.md).
///
/// program   one whose operations have a text that says all (operation_text.h), as those that pass
///           `check` have.
Json to_json(const Schedule& schedule);
Json to_json(const StepProgram& program);

/// Inverses of `to_json`. They say nothing about whether it can be run: `check` does (schedule_check.h,
/// check_program.h).
///
/// Errors   kCorruptData, naming the field. Any JSON is safe to pass in.
Schedule schedule_from_json(const Json& body);
StepProgram step_program_from_json(const Json& body);

/// Writes the document; returns its sha256. A schedule whose path ends with `.csv` is a table (schedule_csv.h), and must
/// pass `check`. Errors of `write_file_atomically`.
std::string save(const Schedule& schedule, const std::filesystem::path& path);
std::string save(const StepProgram& program, const std::filesystem::path& path);

/// Inverses of `save`. Errors of `read_document` and the functions above, or those of `schedule_from_csv`, naming the file.
Schedule load_schedule(const std::filesystem::path& path);
StepProgram load_step_program(const std::filesystem::path& path);

}  // namespace trireme::schedule
