#include "trireme/plan/schedule/operation_text.h"

#include <charconv>
#include <optional>

#include "trireme/error.h"

namespace trireme::schedule {
namespace {

/// What is sent or received: `v17 m3 0>1`, `site 4 2>0`.
std::string message_text(const StepProgram& program, const Operation& operation) {
  const auto index = static_cast<std::size_t>(operation.channel);
  if (operation.channel < 0 || index >= program.channels.size()) {
    return "item " + std::to_string(operation.item) + " on no channel (" +
           std::to_string(operation.channel) + ")";
  }
  const Channel& channel = program.channels[index];
  const std::string item = std::string(kItemPrefixes[static_cast<std::size_t>(channel.kind)]) +
                           std::to_string(operation.item);
  const std::string microbatch =
      has_microbatch(channel.kind) ? " m" + std::to_string(operation.microbatch) : "";
  return item + microbatch + " " + std::to_string(channel.from_stage) + ">" +
         std::to_string(channel.to_stage);
}

/// Takes known texts and numbers off the front of a text.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  bool is_done() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }

  bool take(std::string_view literal) {
    if (!rest_.starts_with(literal)) return false;
    rest_.remove_prefix(literal.size());
    return true;
  }

  bool take(int& number) {
    const auto [end, status] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
    if (status != std::errc{} || number < 0) return false;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return true;
  }

 private:
  std::string_view rest_;
};

std::optional<OperationKind> take_kind(Scanner& scanner) {
  for (const OperationRow& operation : kOperations) {
    if (scanner.take(operation.word)) return operation.kind;
  }
  return std::nullopt;
}

bool take_message(Scanner& scanner, const ProgramIndex& index, int rank, Operation& operation) {
  if (!scanner.take(" ")) return false;
  std::size_t kind = 0;
  while (kind < kItemPrefixes.size() && !scanner.take(kItemPrefixes[kind])) ++kind;
  if (kind == kItemPrefixes.size() || !scanner.take(operation.item)) return false;
  const auto channel = static_cast<ChannelKind>(kind);
  if (has_microbatch(channel) && !(scanner.take(" m") && scanner.take(operation.microbatch))) {
    return false;
  }
  int from = 0, to = 0;
  if (!(scanner.take(" ") && scanner.take(from) && scanner.take(">") && scanner.take(to))) {
    return false;
  }
  operation.channel = operation.kind == OperationKind::kSend
                          ? index.send_channel(channel, from, to, rank)
                          : index.recv_channel(channel, from, to, rank);
  return operation.channel >= 0;
}

/// What stands after the operation's word.
bool take_rest(Scanner& scanner, const ProgramIndex& index, int rank, Operation& operation) {
  switch (row_of(operation.kind).operand) {
    case OperandKind::kMessage:
      return take_message(scanner, index, rank, operation);
    case OperandKind::kAction:
      if (!scanner.take(" ")) return false;
      operation.action = parse_action(scanner.rest());
      return scanner.take(scanner.rest());
    case OperandKind::kBucket:
      return scanner.take(" bucket ") && scanner.take(operation.item);
    case OperandKind::kNothing:
      return true;
  }
  return true;
}

int find(const auto& map, const auto& key) {
  const auto found = map.find(key);
  return found == map.end() ? -1 : found->second;
}

}  // namespace

ProgramIndex::ProgramIndex(const StepProgram& program) : program_(program) {
  for (std::size_t c = 0; c < program.channels.size(); ++c) {
    const auto& [kind, from_stage, to_stage, from_rank, to_rank, limit] = program.channels[c];
    sends_.try_emplace({kind, from_stage, to_stage, from_rank}, static_cast<int>(c));
    recvs_.try_emplace({kind, from_stage, to_stage, to_rank}, static_cast<int>(c));
  }
  for (std::size_t g = 0; g < program.groups.size(); ++g) {
    const RankGroup& group = program.groups[g];
    for (const int rank : group.ranks) {
      groups_.try_emplace({group.kind, rank}, static_cast<int>(g));
    }
  }
}

int ProgramIndex::send_channel(ChannelKind kind, int from_stage, int to_stage, int rank) const {
  return find(sends_, ChannelKey(kind, from_stage, to_stage, rank));
}

int ProgramIndex::recv_channel(ChannelKind kind, int from_stage, int to_stage, int rank) const {
  return find(recvs_, ChannelKey(kind, from_stage, to_stage, rank));
}

int ProgramIndex::group(GroupKind kind, int rank) const {
  return find(groups_, std::pair(kind, rank));
}

std::string to_text(const StepProgram& program, const Operation& operation) {
  const std::string word(row_of(operation.kind).word);
  switch (row_of(operation.kind).operand) {
    case OperandKind::kMessage:
      return word + " " + message_text(program, operation);
    case OperandKind::kAction:
      return word + " " + to_text(operation.action);
    case OperandKind::kBucket:
      return word + " bucket " + std::to_string(operation.item);
    case OperandKind::kNothing:
      return word;
  }
  return word;
}

Operation parse_operation(const ProgramIndex& index, int rank, std::string_view text) {
  const auto fail = [&](const std::string& problem) {
    throw Error(ErrorKind::kInvalidArgument, "'" + std::string(text.substr(0, 80)) + "' is not " +
                                                 "an operation of rank " + std::to_string(rank) +
                                                 ": " + problem);
  };
  Scanner scanner(text);
  Operation operation;
  const std::optional<OperationKind> kind = take_kind(scanner);
  if (!kind) fail("unknown word");
  operation.kind = *kind;
  if (!take_rest(scanner, index, rank, operation) || !scanner.is_done()) {
    fail("it is not of a form like 'recv v17 m3 0>1', or the rank has no such channel");
  }
  if (const auto group = row_of(operation.kind).group) {
    operation.group = index.group(*group, rank);
    if (operation.group < 0) fail("the rank is in no such group");
  }
  // Each operation has one text: no leading zeros.
  if (to_text(index.program(), operation) != text) fail("a number is not written plainly");
  return operation;
}

}  // namespace trireme::schedule
