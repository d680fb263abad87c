#include "tests/habits/net.h"

namespace trireme::habits {
namespace {

std::vector<Habit> recurrent() {
  return {
      {"gru", sequences([](Net& net) -> Forward {
         auto g = net.part(
             "g", nn::GRU(nn::GRUOptions(8, 8).num_layers(2).batch_first(true).dropout(0.2)));
         return [=](const Batch& k) mutable {
           return square_error(std::get<0>(g(k["x"])).select(1, -1), k["y"]);
         };
       })},
      {"lstm_with_dropout_and_projection", sequences([](Net& net) -> Forward {
         const auto options =
             nn::LSTMOptions(8, 8).num_layers(2).batch_first(true).dropout(0.2).proj_size(4);
         auto g = net.part("g", nn::LSTM(options));
         return [=](const Batch& k) mutable {
           return square_error(std::get<0>(g(k["x"])).select(1, -1), k["y"].slice(1, 0, 4));
         };
       })},
      {"unrolled_lstm_cell", sequences([](Net& net) -> Forward {
         auto g = net.part("g", nn::LSTMCell(8, 8));
         auto o = net.linear("o");
         return [=](const Batch& k) mutable {
           const auto size = k["x"].size(0);
           auto h = torch::zeros({size, 8}), c = torch::zeros({size, 8});
           for (int i = 0; i < 6; ++i) {
             std::tie(h, c) = g(k["x"].select(1, i), std::make_tuple(h, c));
           }
           return square_error(o(h), k["y"]);
         };
       })},
  };
}

constexpr std::int64_t kLongest = 6;

/// Sequences of one to five steps, few of which are that long.
nn::utils::rnn::PackedSequence pack(const Batch& batch) {
  const Tensor lengths = batch["t"].select(1, 0).floor_divide(4) + 1;
  return nn::utils::rnn::pack_padded_sequence(batch["x"], lengths, true, false);
}

std::vector<Habit> packed() {
  return {
      {"lstm_of_a_packed_sequence", sequences([](Net& net) -> Forward {
         auto g = net.part("g", nn::LSTM(nn::LSTMOptions(8, 8).batch_first(true)));
         return [=](const Batch& k) mutable {
           const auto lengths = torch::full({k["x"].size(0)}, 6, torch::kLong);
           const auto packed = nn::utils::rnn::pack_padded_sequence(k["x"], lengths, true);
           const auto [out, state] = g->forward_with_packed_input(packed);
           return square_error(std::get<0>(state)[0], k["y"]);
         };
       })},
      {"lstm_of_packed_sequences_of_several_lengths", sequences([](Net& net) -> Forward {
         auto g = net.part("g", nn::LSTM(nn::LSTMOptions(8, 8).batch_first(true)));
         auto o = net.linear("o");
         return [=](const Batch& k) mutable {
           auto [packed, state] = g->forward_with_packed_input(pack(k));
           packed =
               nn::utils::rnn::PackedSequence(torch::relu(packed.data()), packed.batch_sizes(),
                                              packed.sorted_indices(), packed.unsorted_indices());
           const auto padded = nn::utils::rnn::pad_packed_sequence(packed, true, 0.0, kLongest);
           return square_error(o(std::get<0>(padded).mean(1)) + std::get<0>(state)[0], k["y"]);
         };
       })},
      {"packed_sequences_in_other_shapes", sequences([](Net& net) -> Forward {
         auto g =
             net.part("g", nn::LSTM(nn::LSTMOptions(8, 4).batch_first(true).bidirectional(true)));
         auto o = net.linear("o");
         return [=](const Batch& k) mutable {
           const auto [packed, state] = g->forward_with_packed_input(pack(k));
           const auto turned = torch::tanh(packed.data().t()).unsqueeze(0);  // rows come last
           const auto y = torch::cat({std::get<0>(state)[0], std::get<0>(state)[1]}, 1);
           return mean_of(F::mse_loss(o(y), k["y"]) + turned.square().mean());
         };
       })},
      {"packed_sequences_padded_to_the_longest",
       sequences([](Net& net) -> Forward {
         auto g = net.part("g", nn::GRU(nn::GRUOptions(8, 8).batch_first(true)));
         return [=](const Batch& k) mutable {
           const auto packed = std::get<0>(g->forward_with_packed_input(pack(k)));
           const auto padded = nn::utils::rnn::pad_packed_sequence(packed, true);
           return square_error(std::get<0>(padded).mean(1), k["y"]);
         };
       }),
       Outcome::kRefused,
       {"pad_packed_sequence", "longest", "total_length"}},
  };
}

std::vector<Habit> attention() {
  return {
      {"multihead_attention", sequences([](Net& net) -> Forward {
         const auto options = nn::MultiheadAttentionOptions(8, 2).dropout(0.1);
         auto m = net.part("m", nn::MultiheadAttention(options));
         return [=](const Batch& k) mutable {
           const auto x = k["x"].transpose(0, 1);
           return square_error(std::get<0>(m(x, x, x)).mean(0), k["y"]);
         };
       })},
      {"transformer", sequences([](Net& net) -> Forward {
         auto m =
             net.part("m", nn::Transformer(nn::TransformerOptions(8, 2, 2, 2).dim_feedforward(16)));
         return [=](const Batch& k) mutable {
           const auto x = k["x"].transpose(0, 1);
           return square_error(m(x, x).mean(0), k["y"]);
         };
       })},
      {"transformer_encoder_with_masks", sequences([](Net& net) -> Forward {
         const auto layer = nn::TransformerEncoderLayerOptions(8, 2).dim_feedforward(16);
         auto m = net.part("m", nn::TransformerEncoder(nn::TransformerEncoderOptions(layer, 2)));
         return [=](const Batch& k) mutable {
           const auto x = k["x"].transpose(0, 1);
           const auto mask = nn::TransformerImpl::generate_square_subsequent_mask(6);
           return square_error(m(x, mask, k["t"] == 0).mean(0), k["y"]);
         };
       })},
      {"attention_in_an_opaque_module", sequences([](Net& net) -> Forward {
         struct Wrapped : nn::Module {
           nn::MultiheadAttention m{nn::MultiheadAttentionOptions(8, 2)};
           Wrapped() { register_module("m", m); }
           TensorList forward(const TensorList& in) {
             return {std::get<0>(m(in[0], in[0], in[0])).contiguous()};
           }
         };
         auto wrapped = net.register_module("w", std::make_shared<Wrapped>());
         auto o = net.linear("o");
         auto f = opaque("attention", wrapped);
         return [=](const Batch& k) mutable {
           const auto x = k["x"].transpose(0, 1).contiguous();
           return square_error(o(f({x})[0].mean(0)), k["y"]);
         };
       })},
  };
}

std::vector<Habit> embeddings() {
  Habit renormed{"embedding_with_a_largest_norm",
                 sequences([](Net& net) -> Forward {
                   const auto options = nn::EmbeddingOptions(20, 8).padding_idx(0).max_norm(1.0);
                   auto e = net.part("e", nn::Embedding(options));
                   return [=](const Batch& k) mutable {
                     return square_error(e(k["t"]).mean(1), k["y"]);
                   };
                 }),
                 Outcome::kRecorded,
                 {},
                 false};
  Habit bag{"embedding_bag_with_a_largest_norm",
            sequences([](Net& net) -> Forward {
              const auto options = nn::EmbeddingBagOptions(20, 8).max_norm(1.0).mode(torch::kMean);
              auto e = net.part("e", nn::EmbeddingBag(options));
              return [=](const Batch& k) mutable { return square_error(e(k["t"]), k["y"]); };
            }),
            Outcome::kRecorded,
            {},
            false};
  Habit tied{"embedding_with_a_largest_norm_that_is_the_output_too",
             sequences([](Net& net) -> Forward {
               auto e = net.part("e", nn::Embedding(nn::EmbeddingOptions(20, 8).max_norm(1.0)));
               return [=](const Batch& k) mutable {
                 const auto scores = e(k["t"]).mean(1).mm(e->weight.t());
                 return mean_of(F::cross_entropy(scores, k["t"].select(1, 0)));
               };
             }),
             Outcome::kRefused,
             {"aten::t", "parameter 'e.weight'", "max_norm", "Scale the rows"}};
  return {
      {"embedding_bag", sequences([](Net& net) -> Forward {
         auto e = net.part("e", nn::EmbeddingBag(nn::EmbeddingBagOptions(20, 8).mode(torch::kSum)));
         return [=](const Batch& k) mutable { return square_error(e(k["t"]), k["y"]); };
       })},
      {"sparse_embedding_with_repeats", sequences([](Net& net) -> Forward {
         auto e = net.part("e", nn::Embedding(nn::EmbeddingOptions(20, 8).sparse(true)));
         return [=](const Batch& k) mutable { return square_error(e(k["t"]).mean(1), k["y"]); };
       })},
      {"sparse_embedding", sequences([](Net& net) -> Forward {
         auto e = net.part("e", nn::Embedding(nn::EmbeddingOptions(20, 8).sparse(true)));
         return
             [=](const Batch& k) mutable { return square_error(e(k["t"].select(1, 0)), k["y"]); };
       })},
      renormed,
      bag,
      tied,
  };
}

}  // namespace

std::vector<Habit> sequence_habits() {
  std::vector<Habit> all = recurrent();
  for (auto& part : {packed(), attention(), embeddings()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace trireme::habits
