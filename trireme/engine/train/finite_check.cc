#include "trireme/engine/train/finite_check.h"

#include <algorithm>
#include <cmath>

#include "trireme/engine/checkpoint/tensor_file.h"
#include "trireme/error.h"

namespace trireme::train {

std::string not_finite(const StepLosses& losses) {
  for (const LossTotal& loss : losses.losses) {
    const double mean = loss.mean();
    if (loss.coefficient == 0 || std::isfinite(mean)) continue;
    return "loss '" + loss.name + "' is " + (std::isnan(mean) ? "nan" : mean > 0 ? "inf" : "-inf");
  }
  return "";
}

std::string not_finite(const parameters::SquareNorms& square_norms) {
  for (const auto& [name, square] : square_norms) {
    if (!std::isfinite(square)) return "the gradient of '" + name + "' is not finite";
  }
  return "";
}

std::string not_finite(const parameters::ParameterStore& store) {
  for (const std::string& name : store.names()) {
    if (!checkpoint::is_finite(store.kept_value(name))) {
      return "the value of '" + name + "' is not finite";
    }
  }
  return "";
}

void require_finite(const std::string& problem, std::int64_t step) {
  if (problem.empty()) return;
  throw Error(ErrorKind::kCorruptData,
              problem + " in step " + std::to_string(step) +
                  ": the training ends here, and the last finite checkpoint stays; take a smaller "
                  "--learning-rate, or --clip-norm, or look at the data of this step; "
                  "--allow-nonfinite continues");
}

}  // namespace trireme::train
