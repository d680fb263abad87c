#include "trireme/plan/analytic/failures.h"

#include <fmt/format.h>

#include <cmath>

#include "trireme/error.h"

namespace trireme::analytic {
namespace {

void expect_positive(const char* name, double value) {
  if (std::isfinite(value) && value > 0) return;
  throw Error(ErrorKind::kInvalidArgument,
              fmt::format("{} must be a number of seconds above 0, got {}", name, value));
}

void expect_not_negative(const char* name, double value) {
  if (std::isfinite(value) && value >= 0) return;
  throw Error(ErrorKind::kInvalidArgument,
              fmt::format("{} must be a number of seconds, 0 or more, got {}", name, value));
}

}  // namespace

double best_interval_s(double mtbf_s, double checkpoint_s) {
  expect_positive("mtbf_s", mtbf_s);
  expect_positive("checkpoint_s", checkpoint_s);
  // t + log(1 - t) falls from 0 at t = 0 without end, so that it is -checkpoint_s / mtbf_s once.
  const double aim = checkpoint_s / mtbf_s;
  double low = 0, high = 1;
  for (int halvings = 0; halvings < 1100; ++halvings) {  // However small the root is.
    const double middle = (low + high) / 2;
    (middle + std::log1p(-middle) + aim > 0 ? low : high) = middle;
  }
  return low * mtbf_s;
}

Goodput goodput(const Failures& failures, std::int64_t num_hosts) {
  expect_positive("host_mtbf_s", failures.host_mtbf_s);
  expect_positive("checkpoint_s", failures.checkpoint_s);
  expect_not_negative("restart_s", failures.restart_s);
  expect_not_negative("interval_s", failures.interval_s);
  if (num_hosts < 1) {
    throw Error(ErrorKind::kInvalidArgument,
                fmt::format("num_hosts must be at least 1, got {}", num_hosts));
  }
  Goodput result{.mtbf_s = failures.host_mtbf_s / static_cast<double>(num_hosts)};
  result.interval_s = failures.interval_s > 0
                          ? failures.interval_s
                          : best_interval_s(result.mtbf_s, failures.checkpoint_s);
  const double work = (result.interval_s + failures.checkpoint_s) / result.mtbf_s;
  result.part = result.interval_s / result.mtbf_s /
                (std::exp(failures.restart_s / result.mtbf_s) * std::expm1(work));
  return result;
}

}  // namespace trireme::analytic
