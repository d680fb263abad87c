#include "trireme/engine/checkpoint/checkpoint_index.h"

#include <algorithm>
#include <set>
#include <utility>

#include "trireme/base/json_field.h"
#include "trireme/base/load_document.h"
#include "trireme/base/sha256.h"
#include "trireme/error.h"

namespace trireme::checkpoint {

namespace {

File file_from_json(const JsonField& field) {
  JsonObject object(field);
  File file;
  const JsonField name = object.required("name");
  file.name = name.text();
  if (file.name.empty() || file.name.front() == '.' || file.name.find('/') != std::string::npos) {
    name.fail_expected("the name of a file in the checkpoint's own folder");
  }
  file.bytes = object.required("bytes").integer(0);
  const JsonField hash = object.required("sha256");
  file.sha256 = hash.text();
  if (!is_sha256(file.sha256)) hash.fail_expected("a SHA-256");
  object.finish();
  return file;
}

Slice slice_from_json(const JsonField& field) {
  JsonObject object(field);
  Slice slice;
  slice.file = object.required("file").text();
  slice.begin = object.required("begin").integer(0);
  slice.end = object.required("end").integer(slice.begin);
  object.finish();
  return slice;
}

TensorEntry tensor_from_json(const JsonField& field) {
  JsonObject object(field);
  TensorEntry tensor;
  tensor.dtype = dtype_from_json(object.required("dtype"));
  tensor.shape = object.required("shape").list([](const JsonField& dim) { return dim.integer(0); });
  tensor.slices = object.required("slices").list(slice_from_json);
  object.finish();
  return tensor;
}

/// Slices must be whole rows, each once.
void check_rows(const Contents& contents) {
  for (const auto& [key, tensor] : contents.tensors) {
    std::int64_t done = 0;
    bool fits = !tensor.slices.empty();
    for (const Slice& slice : tensor.slices) {
      fits = fits && slice.begin == done;
      done = slice.end;
    }
    if (fits && done == num_rows(tensor.shape)) continue;
    throw Error(ErrorKind::kCorruptData, "the slices of '" + key + "' are not its " +
                                             std::to_string(num_rows(tensor.shape)) +
                                             " rows, each once");
  }
}

void check_names(const JsonField& field, const std::vector<File>& files) {
  std::set<std::string> names;
  for (const File& file : files) {
    if (!names.insert(file.name).second) field.fail("file '" + file.name + "' is listed twice");
  }
}

Index index_from_json(const Json& body) {
  JsonObject object(JsonField(body, "checkpoint"));
  Index index;
  index.step = object.required("step").integer(0);
  index.position = object.required("position").integer(0);
  JsonObject facts(object.required("facts"));
  for (const auto& [name, value] : facts.field().json().items()) {
    index.facts[name] = facts.required(name).text();
  }
  index.contents = contents_from_json(object.required("contents"));
  object.finish();
  check_rows(index.contents);
  return index;
}

}  // namespace

std::int64_t num_rows(const std::vector<std::int64_t>& shape) {
  return shape.empty() ? 1 : shape.front();
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (const std::int64_t dim : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(dim);
  return text + "]";
}

std::string name_in_file(const std::string& key, const TensorEntry& tensor, const Slice& slice) {
  if (slice.begin == 0 && slice.end == num_rows(tensor.shape)) return key;
  return key + "[" + std::to_string(slice.begin) + ":" + std::to_string(slice.end) + "]";
}

void Contents::merge(Contents other) {
  if (not_finite.empty() || (!other.not_finite.empty() && other.not_finite < not_finite)) {
    not_finite = other.not_finite;
  }
  files.insert(files.end(), std::make_move_iterator(other.files.begin()),
               std::make_move_iterator(other.files.end()));
  for (auto& [key, tensor] : other.tensors) {
    const auto [place, is_new] = tensors.try_emplace(key, tensor);
    if (is_new) continue;
    TensorEntry& mine = place->second;
    if (mine.dtype != tensor.dtype || mine.shape != tensor.shape) {
      throw Error(ErrorKind::kInvalidArgument,
                  "one writer has '" + key + "' of shape " + shape_text(mine.shape) +
                      ", another of " + shape_text(tensor.shape) + ", or of another dtype");
    }
    mine.slices.insert(mine.slices.end(), tensor.slices.begin(), tensor.slices.end());
    std::sort(mine.slices.begin(), mine.slices.end(),
              [](const Slice& a, const Slice& b) { return a.begin < b.begin; });
  }
}

Json to_json(const Contents& contents) {
  Json json = {{"files", Json::array()}, {"tensors", Json::object()}};
  for (const File& file : contents.files) {
    json["files"].push_back({{"name", file.name}, {"bytes", file.bytes}, {"sha256", file.sha256}});
  }
  for (const auto& [key, tensor] : contents.tensors) {
    Json slices = Json::array();
    for (const Slice& slice : tensor.slices) {
      slices.push_back({{"file", slice.file}, {"begin", slice.begin}, {"end", slice.end}});
    }
    json["tensors"][key] = {
        {"dtype", to_text(tensor.dtype)}, {"shape", tensor.shape}, {"slices", slices}};
  }
  if (!contents.not_finite.empty()) json["not_finite"] = contents.not_finite;
  return json;
}

Contents contents_from_json(const JsonField& field) {
  JsonObject object(field);
  Contents contents;
  const JsonField files = object.required("files");
  contents.files = files.list(file_from_json);
  check_names(files, contents.files);
  JsonObject tensors(object.required("tensors"));
  if (const auto key = object.optional("not_finite")) contents.not_finite = key->text();
  object.finish();
  for (const auto& [key, value] : tensors.field().json().items()) {
    const JsonField place = tensors.required(key);
    TensorEntry tensor = tensor_from_json(place);
    for (const Slice& slice : tensor.slices) {
      const auto has_name = [&](const File& file) { return file.name == slice.file; };
      if (std::none_of(contents.files.begin(), contents.files.end(), has_name)) {
        place.fail("its file '" + slice.file.substr(0, 80) + "' is not listed");
      }
    }
    contents.tensors[key] = std::move(tensor);
  }
  return contents;
}

Json to_json(const Index& index) {
  return {{"step", index.step},
          {"position", index.position},
          {"facts", index.facts},
          {"contents", to_json(index.contents)}};
}

std::string save(const Index& index, const std::filesystem::path& path) {
  check_rows(index.contents);
  return write_document(path, kIndexDocument, to_json(index));
}

Index load(const std::filesystem::path& path) {
  return load_document(path, kIndexDocument, index_from_json);
}

std::string show(const Index& index) {
  std::string text = "checkpoint after " + std::to_string(index.step) +
                     " steps, next sample at position " + std::to_string(index.position) + "\n";
  if (!index.contents.not_finite.empty()) {
    text += "  not finite: " + index.contents.not_finite + "\n";
  }
  for (const auto& [name, value] : index.facts) text += "  " + name + "  " + value + "\n";
  for (const File& file : index.contents.files) {
    text += file.name + "  " + std::to_string(file.bytes) + " bytes\n";
  }
  for (const auto& [key, tensor] : index.contents.tensors) {
    text += "  " + key + "  " + std::string(to_text(tensor.dtype)) + " " + shape_text(tensor.shape);
    for (const Slice& slice : tensor.slices) {
      text += "  " + slice.file;
      if (tensor.slices.size() > 1) {
        text += "[" + std::to_string(slice.begin) + ":" + std::to_string(slice.end) + "]";
      }
    }
    text += "\n";
  }
  return text;
}

}  // namespace trireme::checkpoint
