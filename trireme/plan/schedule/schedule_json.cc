#include "trireme/plan/schedule/schedule_json.h"

#include "trireme/base/files.h"
#include "trireme/base/load_document.h"
#include "trireme/base/sha256.h"
#include "trireme/error.h"
#include "trireme/plan/schedule/operation_text.h"
#include "trireme/plan/schedule/schedule_csv.h"

namespace trireme::schedule {
namespace {

int read_index(const JsonField& field) { return field.index(0); }

/// `read(text)` of a text, its complaint as one about the field.
template <typename Read>
auto read_text(const JsonField& field, Read read) {
  try {
    return read(field.text());
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kCorruptData) throw;
    field.fail(error.message());
  }
}

Action action_from_json(const JsonField& field) { return read_text(field, parse_action); }

std::vector<Action> actions_from_json(const JsonField& field) {
  return field.list(action_from_json);
}

Json to_json(const Channel& channel) {
  Json json = {{"kind", kChannelKindNames[static_cast<std::size_t>(channel.kind)]},
               {"from_stage", channel.from_stage},
               {"to_stage", channel.to_stage},
               {"from_rank", channel.from_rank},
               {"to_rank", channel.to_rank}};
  if (channel.limit > 0) json["limit"] = channel.limit;
  return json;
}

Channel channel_from_json(const JsonField& field) {
  JsonObject object(field);
  Channel channel;
  channel.kind = static_cast<ChannelKind>(object.required("kind").choice(kChannelKindNames));
  channel.from_stage = read_index(object.required("from_stage"));
  channel.to_stage = read_index(object.required("to_stage"));
  channel.from_rank = read_index(object.required("from_rank"));
  channel.to_rank = read_index(object.required("to_rank"));
  if (const auto limit = object.optional("limit")) channel.limit = limit->index(1);
  object.finish();
  return channel;
}

Json to_json(const RankGroup& group) {
  return {{"kind", kGroupKindNames[static_cast<std::size_t>(group.kind)]},
          {"index", group.index},
          {"ranks", group.ranks}};
}

RankGroup group_from_json(const JsonField& field) {
  JsonObject object(field);
  RankGroup group;
  group.kind = static_cast<GroupKind>(object.required("kind").choice(kGroupKindNames));
  group.index = read_index(object.required("index"));
  group.ranks = object.required("ranks").list(read_index);
  object.finish();
  return group;
}

std::vector<Operation> operations_from_json(const ProgramIndex& index, int rank,
                                            const JsonField& field) {
  return field.list([&](const JsonField& item) {
    return read_text(item,
                     [&](const std::string& text) { return parse_operation(index, rank, text); });
  });
}

}  // namespace

Json to_json(const Schedule& schedule) {
  Json json = {{"num_stages", schedule.num_stages},
               {"num_microbatches", schedule.num_microbatches},
               {"ranks", Json::array()}};
  for (const std::vector<Action>& actions : schedule.ranks) {
    Json texts = Json::array();
    for (const Action& action : actions) texts.push_back(to_text(action));
    json["ranks"].push_back(std::move(texts));
  }
  if (!schedule.positions.empty()) json["positions"] = schedule.positions;
  return json;
}

Schedule schedule_from_json(const Json& body) {
  JsonObject object(JsonField(body, "schedule"));
  Schedule schedule;
  schedule.num_stages = object.required("num_stages").index(1);
  schedule.num_microbatches = object.required("num_microbatches").index(1);
  schedule.ranks = object.required("ranks").list(actions_from_json);
  if (const auto positions = object.optional("positions")) {
    schedule.positions = positions->list(read_index);
  }
  object.finish();
  return schedule;
}

Json to_json(const StepProgram& program) {
  Json json = {{"num_microbatches", program.num_microbatches},
               {"channels", Json::array()},
               {"groups", Json::array()},
               {"ranks", Json::array()}};
  for (const Channel& channel : program.channels) json["channels"].push_back(to_json(channel));
  for (const RankGroup& group : program.groups) json["groups"].push_back(to_json(group));
  for (const std::vector<Operation>& operations : program.ranks) {
    Json texts = Json::array();
    for (const Operation& operation : operations) texts.push_back(to_text(program, operation));
    json["ranks"].push_back(std::move(texts));
  }
  return json;
}

StepProgram step_program_from_json(const Json& body) {
  JsonObject object(JsonField(body, "step program"));
  StepProgram program;
  program.num_microbatches = object.required("num_microbatches").index(1);
  program.channels = object.required("channels").list(channel_from_json);
  program.groups = object.required("groups").list(group_from_json);
  const ProgramIndex index(program);
  for (const JsonField& rank : object.required("ranks").items()) {
    program.ranks.push_back(
        operations_from_json(index, static_cast<int>(program.ranks.size()), rank));
  }
  object.finish();
  return program;
}

std::string save(const Schedule& schedule, const std::filesystem::path& path) {
  if (is_csv(path)) {
    const std::string text = to_csv(schedule);
    write_file_atomically(path, text);
    return trireme::sha256(text);
  }
  return write_document(path, kScheduleDocument, to_json(schedule));
}

std::string save(const StepProgram& program, const std::filesystem::path& path) {
  return write_document(path, kStepProgramDocument, to_json(program));
}

Schedule load_schedule(const std::filesystem::path& path) {
  if (is_csv(path)) return schedule_from_csv(read_file(path), path.string());
  return load_document(path, kScheduleDocument, schedule_from_json);
}

StepProgram load_step_program(const std::filesystem::path& path) {
  return load_document(path, kStepProgramDocument, step_program_from_json);
}

}  // namespace trireme::schedule
