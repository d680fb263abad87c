// Any bytes are either rows of published runs, each of which is a case that can be predicted or says why not, or a
// trireme::Error.

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <variant>

#include "trireme/error.h"
#include "trireme/plan/published/calibrate.h"
#include "trireme/plan/published/run_case.h"
#include "trireme/plan/published/run_row.h"

namespace published = trireme::published;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<published::RunRow> rows;
  try {
    rows = published::parse_runs(text, "input");
  } catch (const trireme::Error&) {
    return 0;
  }
  const published::RunCases cases = published::make_cases(rows);
  if (cases.cases.size() + cases.skipped.size() != rows.size()) std::abort();
  for (const double step_s : published::predict_steps(cases.cases, {})) {
    if (!(step_s > 0) || !std::isfinite(step_s)) std::abort();
  }
  return 0;
}
