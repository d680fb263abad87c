#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>

namespace trireme::analytic {

/// What is not published of a device: which part of its peaks programs achieve. Nothing here is of
/// one run. Written here is what is usual before any run is looked at.
struct AchievedParts {
  // By kind of device: parts of its maker's numbers, 0 to 1.
  double matrix = 0.75;  ///< Of the peak, in large products of 16 bits.
  double memory = 0.75;  ///< Of the memory's bandwidth.
  double link = 0.75;    ///< Of a link within a host.
  double network = 0.8;  ///< Of a host's cards.
  // Of programs, whatever the device.
  double f8 = 0.9;                  ///< matrix of f8, over that of 16 bits.
  double fused_attention = 0.5;     ///< Its part of the peak in products, over matrix.
  double attention_backward = 2.5;  ///< Time of fused attention's backward over its forward.
  double score_products = 0.5;      ///< Products of attention that keeps scores, over matrix.
  double small_backward = 1.5;   ///< Time of the operators between products: backward over forward.
  double eager = 1.5;            ///< Of them, where each is a kernel of its own, over fused ones.
  double weight_sums = 0.5;      ///< Part of adding gradients of weights that products do not hide.
  double hidden_sharding = 0.3;  ///< Part of a gather of parameters that slows compute beside it.
  double hidden_reduction =
      0.3;  ///< Part of the sum of gradients that is left where it is overlapped.
  double hidden_tensor = 0.5;  ///< Likewise, of sums over a tensor group.
  double latency_us = 10;      ///< Of a message between hosts.
  double step_ms = 15;         ///< Of a step, beside all this.
  bool operator==(const AchievedParts&) const = default;
};

/// A field of AchievedParts for who fits them.
struct AchievedField {
  std::string_view name;
  double AchievedParts::* value;
  bool of_device;  ///< By kind of device, else of all.
  double spread;   ///< How far it may be from what is usual: standard deviation of its logarithm.
  double most;     ///< Not above.
};

inline constexpr std::size_t kNumAchieved = 16;

/// All of them, those of devices first.
const std::array<AchievedField, kNumAchieved>& achieved_fields();

/// By Accelerator::name; those of devices that are not there are under the empty name.
using AchievedByDevice = std::map<std::string, AchievedParts, std::less<>>;

/// Of a device, or what all have.
const AchievedParts& achieved_of(const AchievedByDevice& all, std::string_view device);

/// Whether a published run on such a device is among those that `usual_achieved` was fitted on.
bool is_fitted(std::string_view device);

/// Fitted on all published runs of benchmarks/simulator/runs.csv that can be predicted.
const AchievedByDevice& usual_achieved();

}  // namespace trireme::analytic
