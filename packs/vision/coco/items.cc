#include "packs/vision/coco/items.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "packs/vision/coco/polygon.h"
#include "trireme/error.h"

namespace trireme::vision::internal {
namespace {

std::vector<double> coordinates(const Json& shape) {
  std::vector<double> xy;
  const JsonField field(shape, "polygon");
  for (const JsonField& coordinate : field.items()) xy.push_back(coordinate.real());
  return xy;
}

Rle mask_of_shapes(const Json& shapes, ImageSize image) {
  std::vector<Rle> parts;
  const bool are_boxes = shapes[0].is_array() && shapes[0].size() == 4;
  for (const Json& shape : shapes) {
    const std::vector<double> xy = coordinates(shape);
    if (are_boxes && xy.size() != 4) {
      throw Error(ErrorKind::kCorruptData, "expected boxes only, as the first shape is one");
    }
    parts.push_back(are_boxes ? from_box(image, {xy[0], xy[1], xy[2], xy[3]})
                              : from_polygon(image, xy));
  }
  return union_of(parts);
}

Rle mask_of_runs(const JsonField& whole, ImageSize image) {
  JsonObject fields(whole);
  const std::vector<std::int64_t> size =
      fields.required("size").list([](const JsonField& one) { return one.integer(); });
  const bool is_right_size = size.size() == 2 && ImageSize{size[0], size[1]} == image;
  if (!is_right_size) {
    whole.fail("expected the size of its image, [" + std::to_string(image.height) + "," +
               std::to_string(image.width) + "], got " + whole.json()["size"].dump());
  }
  const JsonField counts = fields.required("counts");
  if (counts.json().is_string()) return parse_rle(image, counts.text());
  return from_counts(image, counts.list([](const JsonField& one) { return one.integer(); }));
}

}  // namespace

Item::Item(const Json& json, std::string_view list, std::int64_t index)
    : json_(&json), list_(list), index_(index) {
  if (!json.is_object()) fail("expected an object");
}

const Json* Item::find(const char* name) const {
  const auto found = json_->find(name);
  return found == json_->end() ? nullptr : &*found;
}

void Item::fail(const std::string& problem) const {
  throw Error(ErrorKind::kCorruptData,
              std::string(list_) + " item " + std::to_string(index_) + ": " + problem);
}

JsonField Item::field(const char* name) const {
  const Json* value = find(name);
  if (value == nullptr) fail(std::string("has no \"") + name + "\"");
  return {*value, std::string(list_) + " item " + std::to_string(index_) + "." + name};
}

std::int64_t Item::integer(const char* name) const {
  const Json* value = find(name);
  if (value != nullptr && value->is_number_integer()) {
    const auto number = value->get<std::int64_t>();
    if (number >= 0 || !value->is_number_unsigned()) return number;  // 2^63 and above wrap
  }
  return field(name).integer();
}

double Item::number(const char* name) const {
  const Json* value = find(name);
  if (value == nullptr || !value->is_number()) field(name).fail_expected("a number");
  return value->get<double>();  // parsers refuse what is not finite
}

std::optional<Box> Item::box(const char* name) const {
  const Json* list = find(name);
  if (list == nullptr || (list->is_array() && list->empty())) return std::nullopt;
  const auto is_number = [](const Json& value) { return value.is_number(); };
  if (!list->is_array() || list->size() != 4 || !std::ranges::all_of(*list, is_number)) {
    field(name).fail_expected("x, y, width and height");
  }
  const auto at = [&](int i) { return (*list)[i].get<double>(); };
  return Box{at(0), at(1), at(2), at(3)};
}

template <typename Make>
Rle Item::make_mask(const Image& image, const Make& make) const {
  if (image.size == ImageSize{}) {
    fail("masks need \"height\" and \"width\", which its image " + std::to_string(image.id) +
         " has not");
  }
  try {
    return make();
  } catch (const Error& error) {
    fail(error.message());
  }
}

Rle Item::mask_of_box(const Box& box, const Image& image) const {
  return make_mask(image, [&] { return from_box(image.size, box); });
}

std::optional<Rle> Item::mask(const char* name, const Image& image) const {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_array() && !value->empty()) {
    return make_mask(image, [&] { return mask_of_shapes(*value, image.size); });
  }
  if (value->is_object()) {
    return make_mask(image, [&] { return mask_of_runs(JsonField(*value, name), image.size); });
  }
  field(name).fail_expected("polygons, or an object with \"size\" and \"counts\"");
}

void for_each_item(std::string_view text, std::string_view origin,
                   const std::function<void(const Item& item)>& visit) {
  std::int64_t index = 0;
  bool is_list = false;
  const auto at_event = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > kMaxJsonDepth) {
      throw Error(ErrorKind::kCorruptData, "'" + std::string(origin) + "' is nested too deep");
    }
    using Event = Json::parse_event_t;
    if (depth == 0 && event == Event::array_start) is_list = true;
    const bool is_complete =
        event == Event::object_end || event == Event::array_end || event == Event::value;
    if (depth != 1 || !is_complete || !is_list) return true;
    visit(Item(parsed, origin, index++));
    return false;  // what was visited is dropped
  };
  try {
    std::ignore = Json::parse(text, at_event);  // all of it was dropped
  } catch (const Json::exception& error) {
    const std::string place = !is_list     ? ""
                              : index == 0 ? " in item 0"
                                           : " after item " + std::to_string(index - 1);
    throw Error(ErrorKind::kCorruptData, "'" + std::string(origin) + "' is not valid JSON" + place,
                error);
  }
  if (!is_list) {
    throw Error(ErrorKind::kCorruptData,
                "'" + std::string(origin) + "': expected a list of detections");
  }
}

}  // namespace trireme::vision::internal
