#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/packs/vision/data/image_files.h"

namespace trireme::recipes::resnet50 {

/// A folder of small JPEG images of three classes, `count` of each, told apart by their colour.
inline void write_images(const std::filesystem::path& folder, int count) {
  for (int i = 0; i < 3 * count; ++i) {
    const vision::ImageSize size{.height = 20 + i % 5, .width = 24 - i % 3};
    auto levels = vision::paint(size, 3, i);
    for (std::size_t at = 0; at < levels.size(); ++at) {
      if (static_cast<int>(at % 3) != i % 3) levels[at] /= 4;
    }
    const auto path =
        folder / ("class" + std::to_string(i % 3)) / (std::to_string(100 + i) + ".jpg");
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << vision::to_jpeg(size, levels);
  }
}

}  // namespace trireme::recipes::resnet50
