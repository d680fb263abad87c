#include "trireme/session/followed_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>

#include "trireme/base/document.h"
#include "trireme/base/files.h"
#include "trireme/base/system_error.h"
#include "trireme/error.h"
#include "trireme/session/run_document.h"

namespace trireme::session {
namespace {

constexpr std::chrono::milliseconds kLook{200};

/// A line: an evaluation that was begun, or what it found.
struct Line {
  MadeEvaluation made;
  bool is_begin = false;
};

std::string text_of(const Line& line) {
  Json json = {{"step", line.made.step}};
  if (!line.is_begin) {
    json["losses"] = Json::array();
    for (const LossTotal& one : line.made.losses.losses) {
      json["losses"].push_back({{"name", one.name},
                                {"sum", real_to_json(one.sum)},
                                {"weight", real_to_json(one.weight)},
                                {"coefficient", real_to_json(one.coefficient)}});
    }
  }
  return json.dump() + "\n";
}

LossTotal loss_from_json(const JsonField& field) {
  JsonObject object(field);
  LossTotal loss{.name = object.required("name").text(),
                 .sum = object.required("sum").real(),
                 .weight = object.required("weight").real(),
                 .coefficient = object.required("coefficient").real()};
  object.finish();
  return loss;
}

std::vector<Line> lines_of(const std::string& text) {
  constexpr const char* kOrigin = "a line of evaluations.jsonl";
  std::vector<Line> lines;
  std::istringstream stream(text);
  for (std::string one; std::getline(stream, one);) {
    const Json json = parse_json(one, kOrigin);
    JsonObject object(JsonField(json, kOrigin));
    Line line{.made = {.step = object.required("step").integer(0)}};
    const auto losses = object.optional("losses");
    line.is_begin = !losses;
    if (losses) line.made.losses.losses = losses->list(loss_from_json);
    object.finish();
    lines.push_back(std::move(line));
  }
  return lines;
}

std::filesystem::path file_of(const RunFolder& folder) { return folder.path("evaluations.jsonl"); }
std::filesystem::path lock_of(const RunFolder& folder) { return folder.path("following.lock"); }

/// Whole lines from byte `begin` on; empty where there is no file.
std::string whole_lines(const std::filesystem::path& path, std::uint64_t begin) {
  std::error_code none;
  const std::uintmax_t size = std::filesystem::file_size(path, none);
  if (none || size <= begin) return "";
  std::string text = read_file(path).substr(begin);
  return text.substr(0, text.rfind('\n') + 1);
}

/// Whoever follows; others keep away while it lives.
FileLock lock_following(const RunFolder& folder) {
  try {
    return FileLock(lock_of(folder), std::chrono::milliseconds(1000));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kTimeout) throw;
    throw Error(ErrorKind::kUnavailable,
                fmt::format("another process follows '{}'; end it first", folder.root().string()));
  }
}

/// The following side of rank 0.
class Follower {
 public:
  explicit Follower(const std::string& run) : folder_(run) {
    if (!is_there(folder_.document())) {
      throw Error(ErrorKind::kIo, fmt::format("'{}' holds no run; name the folder of one that has "
                                              "begun, `train --run`",
                                              run));
    }
    lock_.emplace(lock_following(folder_));
    cut_half_line(file_of(folder_));
  }

  /// The step to be evaluated now, `end`, or empty: nothing so far.
  std::string next() {
    if (has_ended()) return "end";
    const auto newest = folder_.checkpoints().newest();
    if (newest == seen_) return "";
    seen_ = newest;
    return newest && *newest > last_evaluated() ? std::to_string(*newest) : "";
  }

  void write(const Line& line) const {
    std::ofstream file(file_of(folder_), std::ios::app | std::ios::binary);
    if (!(file << text_of(line) << std::flush))
      throw_system_error("write", file_of(folder_), errno);
  }

  const RunFolder& folder() const { return folder_; }

 private:
  std::int64_t last_evaluated() const {
    std::int64_t last = -1;
    for (const Line& line : lines_of(whole_lines(file_of(folder_), 0))) {
      if (!line.is_begin) last = std::max(last, line.made.step);
    }
    return last;
  }

  bool has_ended() const {
    const RunDocument run = load_run(folder_.document());
    return !run.segments.empty() && run.segments.back().measured.has_value();
  }

  RunFolder folder_;
  std::optional<FileLock> lock_;
  std::optional<std::int64_t> seen_;  ///< The newest checkpoint so far.
};

}  // namespace

std::string line_of(const MadeEvaluation& made) { return text_of({.made = made}); }

std::vector<MadeEvaluation> evaluations_of(const std::string& lines) {
  std::vector<MadeEvaluation> made;
  for (Line& line : lines_of(lines)) {
    if (!line.is_begin) made.push_back(std::move(line.made));
  }
  return made;
}

std::vector<MadeEvaluation> Evaluations::begin(std::int64_t next_step) {
  const std::filesystem::path path = file_of(folder_);
  if (!is_there(path)) return {};
  std::string kept;
  for (const Line& line : lines_of(whole_lines(path, 0))) {
    if (line.made.step <= next_step) kept += text_of(line);
  }
  write_file_atomically(path, kept);
  read_ = kept.size();
  return evaluations_of(kept);
}

std::string Evaluations::take() {
  const std::string text = whole_lines(file_of(folder_), read_);
  read_ += text.size();
  std::string made;
  for (const Line& line : lines_of(text)) {
    if (line.is_begin) {
      begun_.insert(line.made.step);
    } else {
      begun_.erase(line.made.step);
      made += text_of(line);
    }
  }
  return made;
}

bool Evaluations::is_one_coming() const {
  if (begun_.empty()) return false;
  try {
    const FileLock nobody(lock_of(folder_), std::chrono::milliseconds(0));
    return false;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kTimeout) return true;
    throw;
  }
}

std::int64_t follow(
    const collectives::World& world, const std::string& run,
    const std::function<std::optional<StepLosses>(const std::filesystem::path&)>& evaluate,
    const std::function<void(std::int64_t, const StepLosses&)>& told,
    const std::function<bool()>& stops) {
  std::optional<Follower> follower;
  if (world.rank() == 0) follower.emplace(run);
  std::int64_t num_made = 0;
  while (!stops()) {
    const std::string next =
        collectives::from_first(world, follower ? follower->next() : "", "what to evaluate");
    if (next == "end") break;
    if (next.empty()) {
      std::this_thread::sleep_for(kLook);
      continue;
    }
    MadeEvaluation made{.step = std::stoll(next)};
    if (follower) follower->write({.made = made, .is_begin = true});
    const auto losses = evaluate(RunFolder(run).checkpoints().published(made.step));
    if (!losses) break;
    made.losses = *losses;
    ++num_made;
    if (!follower) continue;
    follower->write({.made = made});
    if (told) told(made.step, made.losses);
  }
  return num_made;
}

}  // namespace trireme::session
