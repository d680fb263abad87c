#pragma once

#include <string>

#include "trireme/base/json.h"
#include "trireme/plan/published/judge.h"
#include "trireme/plan/published/run_case.h"

namespace trireme::published {

/// Tables for people: groups, parts that were fitted, rows if wanted, and what was left out.
std::string show(const Judgement& judgement, const RunCases& cases, bool has_rows);

/// The same for programs. What is not known is null.
Json to_json(const Judgement& judgement, const RunCases& cases);

}  // namespace trireme::published
