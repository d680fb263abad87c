#include "packs/volume/data/volume_files.h"

#include <algorithm>
#include <map>
#include <span>
#include <string_view>
#include <utility>

#include "trireme/base/files.h"
#include "trireme/data/read_parts.h"
#include "trireme/error.h"

namespace trireme::volume {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEndings[] = {".nii.gz", ".nii"};

/// Without its ending; empty for another kind of file.
std::string name_of(const fs::path& file) {
  const std::string name = file.filename().string();
  for (const std::string_view ending : kEndings) {
    if (name.ends_with(ending)) return name.substr(0, name.size() - ending.size());
  }
  return {};
}

/// By name.
std::map<std::string, fs::path> volumes_in(const fs::path& folder) {
  std::error_code failure;
  std::map<std::string, fs::path> files;
  for (fs::directory_iterator at(folder, failure), end; at != end; at.increment(failure)) {
    const std::string name = name_of(at->path());
    if (!name.empty()) files[name] = at->path();
    if (failure) break;
  }
  if (!failure) return files;
  throw Error(ErrorKind::kIo, "cannot list '" + folder.string() + "': " + failure.message());
}

[[noreturn]] void refuse_files(const std::string& problem) {
  throw Error(ErrorKind::kInvalidArgument, "volumes: " + problem);
}

/// The labels of an image; of nnU-Net's first channel too.
const fs::path& labels_of(const std::string& name, const std::map<std::string, fs::path>& labels,
                          const fs::path& folder) {
  constexpr std::string_view kFirstChannel = "_0000";
  auto found = labels.find(name);
  if (found == labels.end() && name.ends_with(kFirstChannel)) {
    found = labels.find(name.substr(0, name.size() - kFirstChannel.size()));
  }
  if (found != labels.end()) return found->second;
  refuse_files("'" + folder.string() + "' has no labels of " + name + "; expected " + name +
               ".nii.gz or " + name + ".nii there");
}

std::vector<VolumeFiles> in_two_folders(const fs::path& images, const fs::path& labels) {
  const std::map<std::string, fs::path> known = volumes_in(labels);
  std::vector<VolumeFiles> cases;
  for (const auto& [name, image] : volumes_in(images)) {
    cases.push_back({name, image, labels_of(name, known, labels)});
  }
  return cases;
}

std::vector<VolumeFiles> in_a_folder_each(const fs::path& images) {
  std::vector<VolumeFiles> cases;
  std::error_code failure;
  for (fs::directory_iterator at(images, failure), end; at != end; at.increment(failure)) {
    if (!at->is_directory()) continue;
    const std::map<std::string, fs::path> files = volumes_in(at->path());
    const auto image = files.find("imaging"), labels = files.find("segmentation");
    if (image == files.end()) continue;
    const std::string name = at->path().filename().string();
    if (labels == files.end()) {
      refuse_files("'" + at->path().string() + "' has no segmentation.nii.gz beside its volume");
    }
    cases.push_back({name, image->second, labels->second});
  }
  if (failure)
    throw Error(ErrorKind::kIo, "cannot list '" + images.string() + "': " + failure.message());
  std::ranges::sort(cases, {}, &VolumeFiles::name);
  return cases;
}

template <typename T>
NiftiVolume<T> parse_counted(const fs::path& path,
                             NiftiVolume<T> (*parse)(std::span<const std::byte>,
                                                     const std::string&)) {
  std::vector<std::byte> bytes;
  {
    data::ReadTimer timer("read");
    bytes = read_file_bytes(path);
    timer.add_bytes(std::ssize(bytes));
  }
  const data::ReadTimer timer("decode");
  return parse(bytes, path.string());
}

[[noreturn]] void fail_case(const VolumeFiles& files, const std::string& problem) {
  throw Error(ErrorKind::kCorruptData,
              "case " + files.name + " ('" + files.labels.string() + "'): " + problem);
}

std::vector<std::uint8_t> as_bytes(const VolumeFiles& files,
                                   const std::vector<std::int32_t>& labels) {
  std::vector<std::uint8_t> bytes(labels.size());
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < 0 || labels[i] > 255)
      fail_case(files, "label " + std::to_string(labels[i]) + " is not from 0 to 255");
    bytes[i] = static_cast<std::uint8_t>(labels[i]);
  }
  return bytes;
}

}  // namespace

std::vector<VolumeFiles> find_volumes(const fs::path& images, const fs::path& labels) {
  std::vector<VolumeFiles> cases =
      labels.empty() ? in_a_folder_each(images) : in_two_folders(images, labels);
  if (!cases.empty()) return cases;
  refuse_files("'" + images.string() + "' has " +
               (labels.empty() ? "no folder with imaging.nii.gz and segmentation.nii.gz; or name "
                                 "the folder of the labels, too"
                               : "no .nii or .nii.gz"));
}

LabelledVolume read_volume(const VolumeFiles& files) {
  NiftiVolume<float> image = parse_counted(files.image, parse_nifti);
  const NiftiVolume<std::int32_t> labels = parse_counted(files.labels, parse_nifti_labels);
  if (image.header.num_volumes != 1 || labels.header.num_volumes != 1) {
    fail_case(files, "expected a volume in each of both files, got " +
                         std::to_string(image.header.num_volumes) + " and " +
                         std::to_string(labels.header.num_volumes));
  }
  if (image.header.shape != labels.header.shape) {
    fail_case(files, "labels of " + to_text(labels.header.shape) + " voxels, a volume of " +
                         to_text(image.header.shape));
  }
  return {image.header.shape, image.header.spacing, std::move(image.values),
          as_bytes(files, labels.values)};
}

LabelledVolume resampled(const LabelledVolume& volume, const Spacing& spacing,
                         const std::string& name) {
  const data::ReadTimer timer("resample");
  LabelledVolume result{.spacing = spacing};
  try {
    result.shape = resampled_shape(volume.shape, volume.spacing, spacing);
  } catch (const Error& error) {
    throw Error(error.kind(), "case " + name + ": " + error.message());
  }
  result.values.resize(static_cast<std::size_t>(result.shape.count()));
  result.labels.resize(result.values.size());
  resample_linear(volume.shape, volume.values.data(), result.shape, result.values.data());
  resample_nearest(volume.shape, volume.labels.data(), result.shape, result.labels.data());
  return result;
}

}  // namespace trireme::volume
