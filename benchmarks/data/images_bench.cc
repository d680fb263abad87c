// Our side of images_bench.py, which asks for one measurement after the other on standard input:
//
//     images_bench FOLDER SIZE        prints the number of images
//     time THREADS COUNT VISIT        reads so many training samples in batches of 64, prints seconds
//     write FILE                      all evaluation samples as f32, one after the other
//
// The folder holds a subfolder for each class. A sample is decoded, cropped, flipped, normalised.

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "packs/vision/data/image_source.h"
#include "trireme/data/parallel_read.h"

namespace trireme::benchmarks {
namespace {

constexpr std::int64_t kBatch = 64;

/// A batch's memory.
class Buffers {
 public:
  explicit Buffers(std::int64_t size)
      : image_(static_cast<std::size_t>(kBatch * 3 * size * size)), label_(kBatch) {}

  void read(const data::Source& source, const std::vector<data::Sample>& samples, int threads) {
    const std::size_t numbers = image_.size() / kBatch;
    const auto read_one = [&](std::int64_t index) {
      const auto i = static_cast<std::size_t>(index);
      const std::span<std::byte> places[] = {
          std::as_writable_bytes(std::span(image_).subspan(i * numbers, numbers)),
          std::as_writable_bytes(std::span(label_).subspan(i, 1))};
      source.read(samples[i], places);
    };
    data::read_each(std::ssize(samples), read_one, kernels::on_threads(threads));
  }

  const std::vector<float>& image() const { return image_; }

 private:
  std::vector<float> image_;
  std::vector<std::int64_t> label_;
};

double time_reading(const data::Source& source, Buffers& buffers, int threads,
                    data::Sample count_and_visit) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<data::Sample> samples;
  for (std::int64_t i = 0; i < count_and_visit.index; ++i) {
    samples.push_back({i % source.num_samples(), count_and_visit.visit});
    if (std::ssize(samples) < kBatch && i + 1 < count_and_visit.index) continue;
    buffers.read(source, samples, threads);
    samples.clear();
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void write_all(const data::Source& source, Buffers& buffers, const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  for (std::int64_t i = 0; i < source.num_samples(); ++i) {
    buffers.read(source, {{i, 0}}, 1);
    file.write(reinterpret_cast<const char*>(buffers.image().data()),
               source.fields()[0].num_bytes());
  }
}

int serve(const std::string& folder, std::int64_t size) {
  const vision::LabelledImages images = vision::open_images({folder});
  const vision::ImageSource training(images, {.size = size, .random = vision::RandomCropOptions{}});
  const vision::ImageSource evaluation(images, {.size = size, .shorter = size * 256 / 224});
  Buffers buffers(size);
  std::cout << training.num_samples() << std::endl;
  for (std::string word; std::cin >> word;) {
    if (word == "time") {
      int threads = 1;
      data::Sample count_and_visit;
      std::cin >> threads >> count_and_visit.index >> count_and_visit.visit;
      std::cout << time_reading(training, buffers, threads, count_and_visit) << std::endl;
    } else {
      std::cin >> word;
      write_all(evaluation, buffers, word);
      std::cout << "written" << std::endl;
    }
  }
  return 0;
}

}  // namespace
}  // namespace trireme::benchmarks

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: images_bench FOLDER SIZE; ./dev bench data runs it\n";
    return 2;
  }
  try {
    return trireme::benchmarks::serve(argv[1], std::stoll(argv[2]));
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
