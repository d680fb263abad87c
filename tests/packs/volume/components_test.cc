#include "packs/volume/kernels/components.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tests/base/error_of.h"
#include "tests/packs/volume/reference/components.h"

namespace trireme::volume {
namespace {

constexpr Connectivity kConnectivities[] = {Connectivity::kFaces, Connectivity::kEdges,
                                            Connectivity::kCorners};

/// Of a map of components, by the definition.
template <typename Label>
std::vector<Component> components_of(const VolumeShape& shape, const std::vector<Label>& labels,
                                     const std::vector<std::int32_t>& map) {
  std::vector<Component> all(map.empty() ? 0 : *std::ranges::max_element(map));
  for (std::int64_t i = 0; i < shape.count(); ++i) {
    if (map[i] == 0) continue;
    Component& component = all[map[i] - 1];
    const Voxel place = shape.voxel_at(i);
    const bool is_first = component.size++ == 0;
    component.label = static_cast<std::int32_t>(labels[i]);
    auto& [begin, end] = component.box;
    for (int axis = 0; axis < 3; ++axis) {
      begin[axis] = is_first ? place[axis] : std::min(begin[axis], place[axis]);
      end[axis] = std::max(end[axis], place[axis] + 1);
    }
  }
  return all;
}

template <typename Label>
void expect_reference(const VolumeShape& shape, int num_labels, double background) {
  std::mt19937 random(static_cast<unsigned>(shape.width + num_labels));
  std::vector<Label> labels(shape.count());
  for (Label& label : labels) {
    const bool is_background = std::uniform_real_distribution<>()(random) < background;
    label = is_background ? 0 : static_cast<Label>(1 + random() % num_labels);
  }
  for (const Connectivity connectivity : kConnectivities) {
    const auto expected = reference::component_map(shape, labels, connectivity);
    std::vector<std::int32_t> map(shape.count(), -1);
    const auto found = connected_components(shape, labels.data(), connectivity, map.data());
    EXPECT_EQ(map, expected) << shape.width << " wide, " << static_cast<int>(connectivity);
    EXPECT_EQ(found, components_of(shape, labels, expected));
    EXPECT_EQ(connected_components(shape, labels.data(), connectivity), found);
  }
}

TEST(ComponentsTest, EqualFloods) {
  for (const std::int64_t width : {1, 2, 7, 8, 9, 63, 64, 65, 130}) {
    for (const double background : {0.0, 0.3, 0.6, 0.9, 0.995}) {
      for (const int num_labels : {1, 2, 40}) {
        expect_reference<std::uint8_t>({4, 5, width}, num_labels, background);
        expect_reference<std::int32_t>({3, 6, width}, num_labels, background);
      }
    }
  }
  expect_reference<std::uint8_t>({1, 1, 300}, 2, 0.5);
  expect_reference<std::uint8_t>({300, 1, 1}, 2, 0.5);
  expect_reference<std::uint8_t>({1, 300, 1}, 2, 0.5);
}

TEST(ComponentsTest, DoNotDependOnThreads) {
  const VolumeShape shape{37, 170, 180};  // more than one slab for each of three threads
  for (const double background : {0.4, 0.75, 0.97}) {
    std::mt19937 random(7);
    std::vector<std::uint8_t> labels(shape.count());
    for (std::uint8_t& label : labels) {
      const bool is_background = std::uniform_real_distribution<>()(random) < background;
      label = is_background ? 0 : static_cast<std::uint8_t>(1 + random() % 2);
    }
    for (const Connectivity connectivity : kConnectivities) {
      const auto expected = reference::component_map(shape, labels, connectivity);
      for (const int num_threads : {1, 2, 3}) {
        std::vector<std::int32_t> map(shape.count(), -1);
        const auto found = connected_components(shape, labels.data(), connectivity, map.data(),
                                                kernels::on_threads(num_threads));
        EXPECT_EQ(map, expected) << num_threads << " threads";
        EXPECT_EQ(found, components_of(shape, labels, expected));
      }
    }
  }
}

TEST(ComponentsTest, SeparatesLabelsThatTouch) {
  const std::vector<std::uint8_t> labels = {1, 1, 2, 2, 1};
  const auto found = connected_components({1, 1, 5}, labels.data(), Connectivity::kCorners);
  ASSERT_EQ(found.size(), 3);
  EXPECT_EQ(found[1], (Component{2, 2, {{0, 0, 2}, {1, 1, 4}}}));
  EXPECT_EQ(found[2], (Component{1, 1, {{0, 0, 4}, {1, 1, 5}}}));
}

TEST(ComponentsTest, RefusesWhatItCannotNumber) {
  const std::uint8_t voxel = 1;
  const auto message = [&](const VolumeShape& shape) {
    return test::error_of([&] { connected_components(shape, &voxel, Connectivity::kFaces); })
        .message();
  };
  const std::string expected = ", expected sides of 1 or more and at most 2147483647 voxels";
  for (const VolumeShape shape :
       {VolumeShape{-1, 2, 3}, VolumeShape{0, 5, 5}, VolumeShape{2048, 1024, 1024},
        VolumeShape{1LL << 62, 1LL << 62, 4}}) {
    EXPECT_EQ(message(shape),
              "connected components: the volume has shape " + to_text(shape) + expected);
  }
}

}  // namespace
}  // namespace trireme::volume
