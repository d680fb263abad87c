#include "trireme/plan/published/calibrate.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "trireme/error.h"
#include "trireme/plan/analytic/predict.h"
#include "trireme/plan/published/least_squares.h"

namespace trireme::published {
namespace {

using analytic::AchievedByDevice;
using analytic::AchievedField;
using analytic::AchievedParts;

constexpr double kScale = 0.05;      // Of an error that is usual.
constexpr double kOutlier = 0.08;    // From where errors count linearly.
constexpr double kDevicePart = 0.7;  // Of a field's spread: how far a device may be from all.
constexpr int kMostSteps = 25;

/// An unknown: the logarithm of a field over its usual value, of one device or of all.
struct Unknown {
  const AchievedField* field;
  std::string device;  ///< Empty: of all.
  double spread;
};

class Calibration {
 public:
  explicit Calibration(std::span<const RunCase> cases) : cases_(cases) {
    std::map<std::string, int> sizes;
    std::set<std::string> devices;
    for (const RunCase& one : cases) {
      ++sizes[one.group()];
      devices.insert(one.machine.accelerator.name);
    }
    for (const RunCase& one : cases) {
      const double noise = one.noise / kScale;
      weights_.push_back(1 / std::sqrt(sizes[one.group()]) / (1 + noise * noise));
    }
    devices_.assign(devices.begin(), devices.end());
    for (const AchievedField& field : analytic::achieved_fields()) {
      unknowns_.push_back({&field, "", field.spread});
      if (!field.of_device) continue;
      for (const std::string& device : devices_) {
        unknowns_.push_back({&field, device, field.spread * kDevicePart});
      }
    }
  }

  AchievedByDevice run() {
    std::vector<double> x(unknowns_.size());
    std::vector<double> errors = errors_of(x);
    double cost = cost_of(errors, x);
    double damping = 1e-2;
    for (int step = 0; step < kMostSteps; ++step) {
      const auto [matrix, side] = normal_equations(x, errors);
      bool is_better = false;
      for (int attempt = 0; attempt < 8 && !is_better; ++attempt) {
        Matrix damped = matrix;
        for (std::size_t i = 0; i < x.size(); ++i) damped[i][i] *= 1 + damping;
        const std::vector<double> move = solve(damped, side);
        std::vector<double> next = x;
        for (std::size_t i = 0; i < x.size(); ++i) next[i] -= std::clamp(move[i], -0.5, 0.5);
        std::vector<double> next_errors = errors_of(next);
        const double next_cost = cost_of(next_errors, next);
        is_better = next_cost < cost;
        damping *= is_better ? 0.25 : 4;
        if (!is_better) continue;
        const double gain = cost - next_cost;
        x = std::move(next);
        errors = std::move(next_errors);
        cost = next_cost;
        if (gain < 1e-4 * cost) return parts_of(x);
      }
      if (!is_better) break;
    }
    return parts_of(x);
  }

 private:
  AchievedByDevice parts_of(const std::vector<double>& x) const {
    AchievedByDevice result;
    result[""] = {};
    for (const std::string& device : devices_) result[device] = {};
    for (std::size_t i = 0; i < x.size(); ++i) {
      const Unknown& unknown = unknowns_[i];
      for (auto& [device, parts] : result) {
        if (!unknown.device.empty() && unknown.device != device) continue;
        parts.*unknown.field->value *= std::exp(x[i]);
      }
    }
    for (auto& [device, parts] : result) {
      for (const AchievedField& field : analytic::achieved_fields()) {
        parts.*field.value = std::min(parts.*field.value, field.most);
      }
    }
    return result;
  }

  double error_of(std::size_t index, const AchievedByDevice& parts) const {
    const RunCase& one = cases_[index];
    const AchievedParts& achieved = achieved_of(parts, one.machine.accelerator.name);
    const double step =
        analytic::predict_time(one.shape, one.machine, one.layout, achieved, clocks_).step_s;
    return std::log(step / one.step_s);
  }

  std::vector<double> errors_of(const std::vector<double>& x) const {
    const AchievedByDevice parts = parts_of(x);
    std::vector<double> errors(cases_.size());
    for (std::size_t i = 0; i < cases_.size(); ++i) errors[i] = error_of(i, parts);
    return errors;
  }

  double cost_of(const std::vector<double>& errors, const std::vector<double>& x) const {
    double cost = 0;
    for (std::size_t i = 0; i < errors.size(); ++i) {
      const double error = std::abs(errors[i]) / kScale, most = kOutlier / kScale;
      cost += weights_[i] * (error < most ? error * error : 2 * most * error - most * most);
    }
    for (std::size_t i = 0; i < x.size(); ++i) {
      cost += x[i] / unknowns_[i].spread * (x[i] / unknowns_[i].spread);
    }
    return cost;
  }

  /// Derivative of each case's error by each unknown.
  Matrix derivatives(const std::vector<double>& x, const std::vector<double>& errors) const {
    constexpr double kStep = 1e-4;
    Matrix result(cases_.size(), std::vector<double>(x.size()));
    for (std::size_t j = 0; j < x.size(); ++j) {
      std::vector<double> moved = x;
      moved[j] += kStep;
      const AchievedByDevice parts = parts_of(moved);
      for (std::size_t i = 0; i < cases_.size(); ++i) {
        const std::string& device = unknowns_[j].device;
        if (!device.empty() && device != cases_[i].machine.accelerator.name) continue;
        result[i][j] = (error_of(i, parts) - errors[i]) / kStep;
      }
    }
    return result;
  }

  std::pair<Matrix, std::vector<double>> normal_equations(const std::vector<double>& x,
                                                          const std::vector<double>& errors) const {
    const Matrix slopes = derivatives(x, errors);
    Matrix matrix(x.size(), std::vector<double>(x.size()));
    std::vector<double> side(x.size());
    for (std::size_t i = 0; i < cases_.size(); ++i) {
      const double weight = weights_[i] / (kScale * kScale) *
                            std::min(1.0, kOutlier / std::max(std::abs(errors[i]), 1e-9));
      for (std::size_t a = 0; a < x.size(); ++a) {
        if (slopes[i][a] == 0) continue;
        side[a] += weight * slopes[i][a] * errors[i];
        for (std::size_t b = 0; b < x.size(); ++b) {
          matrix[a][b] += weight * slopes[i][a] * slopes[i][b];
        }
      }
    }
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double weight = 1 / (unknowns_[i].spread * unknowns_[i].spread);
      matrix[i][i] += weight;
      side[i] += weight * x[i];
    }
    return {std::move(matrix), std::move(side)};
  }

  std::span<const RunCase> cases_;
  std::vector<double> weights_;
  std::vector<std::string> devices_;
  std::vector<Unknown> unknowns_;
  mutable analytic::PipelineClocks clocks_;
};

}  // namespace

AchievedByDevice calibrate(std::span<const RunCase> cases) {
  std::vector<RunCase> transformers;
  std::ranges::copy_if(cases, std::back_inserter(transformers),
                       [](const RunCase& one) { return one.shape.is_transformer(); });
  if (transformers.empty()) {
    throw Error(ErrorKind::kInvalidArgument,
                "there is no run of a transformer to calibrate with; name other groups");
  }
  return Calibration(transformers).run();
}

std::vector<double> predict_steps(std::span<const RunCase> cases,
                                  const AchievedByDevice& achieved) {
  analytic::PipelineClocks clocks;
  std::vector<double> result;
  for (const RunCase& one : cases) {
    const AchievedParts& parts = achieved_of(achieved, one.machine.accelerator.name);
    result.push_back(
        analytic::predict_time(one.shape, one.machine, one.layout, parts, clocks).step_s);
  }
  return result;
}

}  // namespace trireme::published
