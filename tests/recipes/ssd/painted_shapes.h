#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "tests/packs/vision/data/image_files.h"
#include "trireme/base/json.h"

namespace trireme::recipes::ssd {

/// `count` JPEG images of `side` pixels with one to three rectangles each, of two categories told apart by colour (red is
/// category 3, blue 7), and their COCO file, `instances.json`. The last image has none.
inline void write_shapes(const std::filesystem::path& folder, int count, int side = 64,
                         unsigned seed = 1) {
  std::filesystem::create_directories(folder);
  std::mt19937 random(seed);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  Json images = Json::array(), annotations = Json::array();
  for (int i = 0; i < count; ++i) {
    auto levels = vision::paint({.height = side, .width = side}, 3, i);
    for (auto& level : levels) level /= 3;
    const int num_shapes = i + 1 == count ? 0 : 1 + below(3);
    for (int s = 0; s < num_shapes; ++s) {
      const int category = below(2), width = side / 4 + below(side / 4);
      const int height = side / 4 + below(side / 4);
      const int left = below(side - width), top = below(side - height);
      for (int y = top; y < top + height; ++y) {
        for (int x = left; x < left + width; ++x) {
          auto* pixel = levels.data() + 3 * (y * side + x);
          std::fill_n(pixel, 3, std::uint8_t{30});
          pixel[category == 0 ? 0 : 2] = 230;
        }
      }
      annotations.push_back({{"id", annotations.size() + 1},
                             {"image_id", 10 + i},
                             {"category_id", category == 0 ? 3 : 7},
                             {"bbox", {left, top, width, height}},
                             {"area", width * height},
                             {"iscrowd", 0}});
    }
    const std::string name = std::to_string(100 + i) + ".jpg";
    std::ofstream(folder / name, std::ios::binary)
        << vision::to_jpeg({.height = side, .width = side}, levels, {.sampling = {1, 1}});
    images.push_back({{"id", 10 + i}, {"file_name", name}, {"height", side}, {"width", side}});
  }
  const Json categories = {{{"id", 3}, {"name", "red"}}, {{"id", 7}, {"name", "blue"}}};
  std::ofstream(folder / "instances.json") << compact_text(
      {{"images", images}, {"annotations", annotations}, {"categories", categories}});
}

}  // namespace trireme::recipes::ssd
