// Connected components on a GPU: what the processors' kernel finds.

#include <gtest/gtest.h>

#include <vector>

#include "packs/volume/cuda/components.h"
#include "tests/kernels/cuda/device_array.h"
#include "tests/packs/volume/cuda/components_problem.h"

namespace trireme::volume::cuda {
namespace {

using namespace kernels;
using namespace kernels::cuda;

template <typename Label>
void expect_those_of_a_processor(const ComponentsProblem<Label>& p, Stream& stream) {
  const DeviceArray<Label> labels(p.labels, stream);
  const trireme::cuda::DeviceMemory workspace(0, components_workspace_bytes(p.shape));
  for (const Connectivity connectivity : kAllConnectivities) {
    const ComponentsResult expected = p.solve(connectivity);
    const DeviceArray<Component> components(std::vector<Component>(p.labels.size()), stream);
    const DeviceArray<std::int32_t> map(std::vector<std::int32_t>(p.labels.size(), -7), stream);
    const DeviceArray<std::int64_t> count(std::vector<std::int64_t>(1, -7), stream);
    connected_components(p.shape, labels.data(), connectivity,
                         {components.data(), std::ssize(p.labels), count.data(), map.data()},
                         workspace.bytes(), trireme::cuda::handle_of(stream));
    ComponentsResult found{components.values(), map.values()};
    found.components.resize(count.values()[0]);
    EXPECT_TRUE(found == expected) << p.name << " in " << to_text(p.shape);
  }
}

TEST(CudaComponents, FindWhatAProcessorFinds) {
  if (const auto reason = trireme::cuda::why_no_gpu()) GTEST_SKIP() << reason->message();
  const auto stream = trireme::cuda::make_stream(0);
  for (const auto& p : components_problems<std::uint8_t>()) expect_those_of_a_processor(p, *stream);
  for (const auto& p : components_problems<std::int32_t>()) expect_those_of_a_processor(p, *stream);
  expect_those_of_a_processor(spiral<std::uint8_t>(1001), *stream);
  expect_those_of_a_processor(snake<std::uint8_t>({33, 65, 300}), *stream);
  expect_those_of_a_processor(comb<std::uint8_t>({20, 200, 301}), *stream);
  expect_those_of_a_processor(random_labels<std::uint8_t>({100, 200, 301}, 2, 0.3), *stream);
}

}  // namespace
}  // namespace trireme::volume::cuda
