#pragma once

#include <cstdint>

namespace trireme::analytic {

/// Failures in a long training, and what is done about them. Seconds.
struct Failures {
  double host_mtbf_s =
      0;  ///< Mean time between failures of one host, above 0; the training stops with any.
  double checkpoint_s = 60;  ///< In which training stands still for a checkpoint, above 0.
  double restart_s = 600;  ///< From a failure until training goes on where its last checkpoint was.
  double interval_s = 0;   ///< Of training between checkpoints; 0: the best.
};

/// What failures leave of a training.
struct Goodput {
  double mtbf_s = 0;      ///< Between failures of any host.
  double interval_s = 0;  ///< Of training between checkpoints.
  double part = 1;  ///< Of all time, that in which training makes progress that lasts; 0 to 1.
};

/// The interval tau between checkpoints that leaves most, M = mtbf_s, delta = checkpoint_s: the root of
///
///     exp((tau + delta) / M) (1 - tau / M) = 1,    about sqrt(2 delta M) - delta where delta is small.
///
/// Errors   kInvalidArgument where one is no finite number above 0.
/// Source   Daly, A higher order estimate of the optimum checkpoint interval for restart dumps, FGCS 22, 2006, whose model this
///          minimises; the square root is of Young, CACM 17, 1974.
double best_interval_s(double mtbf_s, double checkpoint_s);

/// What lasts of a training on so many hosts whose failures come at random, each as often as the others, also in
/// checkpoints and restarts:
///
///     part = tau / (M exp(R / M) (exp((tau + delta) / M) - 1)),    M = host_mtbf_s / num_hosts, R = restart_s
///
/// Errors   kInvalidArgument where a number is not finite or not in its range.
/// Source   Daly, the same, its model in which failures come in restarts too.
Goodput goodput(const Failures& failures, std::int64_t num_hosts);

}  // namespace trireme::analytic
