#pragma once

#include <gmock/gmock.h>
#include <torch/types.h>

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "tests/base/error_of.h"
#include "trireme/metrics.h"

namespace trireme::metrics {

using MakeMetric = std::function<std::unique_ptr<Metric>()>;
using Tensors = std::map<std::string, torch::Tensor>;
using Results = std::map<std::string, double>;

inline Batch rows_of(const Tensors& outputs, std::int64_t begin, std::int64_t end) {
  Batch batch;
  for (const auto& [name, tensor] : outputs) batch.set(name, tensor.slice(0, begin, end));
  return batch;
}

/// Of samples that come so many at a time.
inline Results measured_by(const MakeMetric& make, const Tensors& outputs, std::int64_t at_once) {
  const auto metric = make();
  const std::int64_t count = outputs.begin()->second.size(0);
  for (std::int64_t begin = 0; begin < count; begin += at_once) {
    metric->add(rows_of(outputs, begin, std::min(count, begin + at_once)));
  }
  Results results;
  for (const auto& [name, value] : metric->results()) results[name] = value;
  return results;
}

/// Of all samples at once, and the same bits of one after the other, of two after the other.
inline Results measured(const MakeMetric& make, const Tensors& outputs) {
  const Results all =
      measured_by(make, outputs, std::max<std::int64_t>(1, outputs.begin()->second.size(0)));
  for (const std::int64_t at_once : {1, 2}) {
    const Results others = measured_by(make, outputs, at_once);
    EXPECT_EQ(others.size(), all.size());
    for (const auto& [name, value] : all) {
      EXPECT_TRUE(others.at(name) == value ||
                  (value != value && others.at(name) != others.at(name)))
          << name << ": " << value << " and, " << at_once << " at a time, " << others.at(name);
    }
  }
  return all;
}

/// What is said about outputs that are refused, or about their results.
inline std::string refusal(const MakeMetric& make, const Tensors& outputs) {
  const Error error = test::error_of([&] { measured_by(make, outputs, 1 << 20); });
  EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument) << error.message();
  return error.message();
}

}  // namespace trireme::metrics
