#include "packs/vision/coco/ground_truth.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "packs/vision/coco/items.h"
#include "trireme/base/files.h"
#include "trireme/base/json.h"
#include "trireme/error.h"

namespace trireme::vision {
namespace {

using internal::Item;

/// An id's position in an ascending list; -1 where it is not there.
std::int32_t position(const std::vector<std::int64_t>& ids, std::int64_t id) {
  const auto found = std::ranges::lower_bound(ids, id);
  if (found == ids.end() || *found != id) return -1;
  return static_cast<std::int32_t>(found - ids.begin());
}

/// A list of the file with the name that messages give it.
struct List {
  List(const Json& file, const char* name, std::string_view origin)
      : label(std::string(origin) + " " + name) {
    if (!file.is_object() || !file.contains(name) || !file[name].is_array()) {
      throw Error(ErrorKind::kCorruptData,
                  "'" + std::string(origin) + "' has no list \"" + name + "\"");
    }
    json = &file[name];
  }

  Item item(std::int64_t i) const { return {(*json)[i], label, i}; }
  std::int64_t size() const { return std::ssize(*json); }

  /// The value of `id` of each item, in ascending order, and the item that has it; of items with
  /// one id the last.
  std::vector<std::pair<std::int64_t, std::int64_t>> by_id() const {
    std::vector<std::pair<std::int64_t, std::int64_t>> items;
    for (std::int64_t i = 0; i < size(); ++i) items.emplace_back(item(i).integer("id"), -i);
    std::ranges::sort(items);
    const auto same_id = [](const auto& a, const auto& b) { return a.first == b.first; };
    items.erase(std::unique(items.begin(), items.end(), same_id), items.end());
    for (auto& [id, i] : items) i = -i;
    return items;
  }

  std::string label;
  const Json* json = nullptr;
};

void read_images(const List& list, CocoGroundTruth& truth) {
  for (const auto& [id, i] : list.by_id()) {
    const Item image = list.item(i);
    const bool has_size = image.find("height") != nullptr && image.find("width") != nullptr;
    truth.image_ids.push_back(id);
    truth.image_sizes.push_back(
        has_size ? ImageSize{image.integer("height"), image.integer("width")} : ImageSize{});
  }
}

void read_categories(const List& list, CocoGroundTruth& truth) {
  for (const auto& [id, i] : list.by_id()) {
    const Json* name = list.item(i).find("name");
    truth.category_ids.push_back(id);
    truth.category_names.push_back(name != nullptr && name->is_string() ? name->get<std::string>()
                                                                        : std::to_string(id));
  }
}

/// Where an annotation goes; tuples compare as annotations are sorted.
using Place = std::tuple<std::int32_t, std::int32_t, std::int64_t>;  // category, image, item

std::vector<Place> places(const List& list, const CocoGroundTruth& truth) {
  std::vector<Place> places;
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < list.size(); ++i) {
    const Item annotation = list.item(i);
    ids.push_back(annotation.integer("id"));
    const std::int32_t image = truth.image_index(annotation.integer("image_id"));
    const std::int32_t category = truth.category_index(annotation.integer("category_id"));
    if (image >= 0 && category >= 0) places.emplace_back(category, image, i);
  }
  std::ranges::sort(ids);
  const auto twice = std::ranges::adjacent_find(ids);
  if (twice != ids.end()) {
    throw Error(ErrorKind::kCorruptData,
                list.label + ": two have the id " + std::to_string(*twice));
  }
  std::ranges::sort(places);
  return places;
}

bool read_crowd(const Item& annotation) {
  const Json* flag = annotation.find("iscrowd");
  if (flag != nullptr && flag->is_boolean()) return flag->get<bool>();
  return flag != nullptr && annotation.integer("iscrowd") != 0;
}

void add_annotation(const Item& annotation, std::int32_t image, CocoGroundTruth& truth) {
  truth.images.push_back(image);
  truth.ids.push_back(annotation.integer("id"));
  truth.areas.push_back(annotation.number("area"));
  truth.is_crowd.push_back(read_crowd(annotation) ? 1 : 0);
  std::optional<Box> box = annotation.box("bbox");
  if (truth.has_masks) {
    const std::optional<Rle> mask =
        annotation.mask("segmentation", {truth.image_ids[image], truth.image_sizes[image]});
    if (!mask) annotation.fail("has no \"segmentation\"");
    truth.masks.add(*mask);
    if (!box) box = bounding_box(*mask);
  }
  if (!box) annotation.fail("has no \"bbox\"");
  truth.boxes.push_back(*box);
}

}  // namespace

std::int32_t CocoGroundTruth::image_index(std::int64_t id) const { return position(image_ids, id); }

std::int32_t CocoGroundTruth::category_index(std::int64_t id) const {
  return position(category_ids, id);
}

CocoGroundTruth parse_ground_truth(std::string_view text, CocoKind kind, std::string_view origin) {
  const Json file = parse_json(text, origin);
  CocoGroundTruth truth{.has_masks = kind == CocoKind::kMask};
  read_images({file, "images", origin}, truth);
  read_categories({file, "categories", origin}, truth);
  const List annotations(file, "annotations", origin);
  truth.category_begin.assign(truth.category_ids.size() + 1, 0);
  for (const auto& [category, image, i] : places(annotations, truth)) {
    add_annotation(annotations.item(i), image, truth);
    ++truth.category_begin[category + 1];
  }
  std::partial_sum(truth.category_begin.begin(), truth.category_begin.end(),
                   truth.category_begin.begin());
  return truth;
}

CocoGroundTruth read_ground_truth(const std::filesystem::path& file, CocoKind kind) {
  return parse_ground_truth(read_file(file), kind, file.string());
}

}  // namespace trireme::vision
