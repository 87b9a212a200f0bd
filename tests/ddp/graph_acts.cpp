// Graphs in which backward is not simple: activation checkpointing, several modules, unused parameters.
#include <stdexcept>

#include "ddp/checkpoint.hpp"
#include "ddp/program.hpp"

namespace program {
namespace {

// A net whose hidden layer is used twice, each time checkpointed.
struct Checkpointed : torch::nn::Module {
  Checkpointed() {
    first = register_module("first", torch::nn::Linear(4, 6));
    hidden = register_module("hidden", torch::nn::Linear(6, 6));
    last = register_module("last", torch::nn::Linear(6, 3));
  }
  Tensor forward(const Tensor& input, int times) {
    Tensor x = torch::tanh(first->forward(input));
    for (int i = 0; i < times; ++i) x = torch::tanh(Checkpoint::apply(x, hidden.get()));
    return last->forward(x);
  }
  torch::nn::Linear first{nullptr}, hidden{nullptr}, last{nullptr};
};

void checkpointed(const ddprun::Group& group, int times, bool static_graph) {
  torch::manual_seed(1);
  Checkpointed net;
  // With small buckets, one would be averaged before its last gradient, if gradients were not counted.
  ddprun::DistributedDataParallel ddp(net, group, {.bucket_cap_mb = 1e-4, .static_graph = static_graph});
  torch::optim::SGD sgd(net.parameters(), 0.1);
  for (int step = 0; step < 4; ++step) {
    sgd.zero_grad();
    const Tensor output = net.forward(part_of(group, inputs()), times);
    torch::nn::functional::cross_entropy(output, part_of(group, targets())).backward();
    sgd.step();
  }
  print_state(group, net);
}

// One loss of two modules, each with small buckets.
void encoder_decoder(const ddprun::Group& group, bool compresses) {
  torch::manual_seed(1);
  // Compressed, backward ends while the encoder is still being reduced, and then, because of find_unused_parameters,
  // communicates in its own thread too.
  Net encoder(compresses ? 1 << 18 : 16), decoder(16);
  torch::nn::Linear between(3, 4);
  const ddprun::DistributedDataParallelOptions options = {.bucket_cap_mb = 1e-4, .find_unused_parameters = compresses};
  ddprun::DistributedDataParallel first(encoder, group, options), second(decoder, group, options);
  if (compresses) {
    for (auto* one : {&first, &second}) one->register_comm_hook(ddprun::bf16_compress_hook());
  }
  std::vector<Tensor> parameters = encoder.parameters();
  for (const Tensor& parameter : decoder.parameters()) parameters.push_back(parameter);
  torch::optim::Adam adam(parameters, 0.01);
  for (int step = 0; step < 20; ++step) {
    adam.zero_grad();
    loss_of(decoder, between->forward(encoder.forward(part_of(group, inputs()))), part_of(group, targets())).backward();
    adam.step();
  }
  print_state(group, encoder);
  print_state(group, decoder);
}

// Each rank leaves out another parameter; none uses the third.
void unused_by_rank(const ddprun::Group& group, ddprun::DistributedDataParallelOptions options) {
  const auto scale = [&](int64_t index) {
    // In a world of one: as the average over 2 ranks would be.
    if (group.size() == 1) return 0.5F;
    return index % group.size() == group.rank() ? 1.0F : 0.0F;
  };
  torch::manual_seed(1);
  torch::nn::ParameterList list;
  for (int i = 0; i < 3; ++i) list->append(torch::randn({5}).requires_grad_());
  ddprun::DistributedDataParallel ddp(*list, group, options);
  torch::optim::SGD sgd(list->parameters(), torch::optim::SGDOptions(0.1).weight_decay(0.1));
  const std::vector<Tensor> parameters = list->parameters();
  for (int step = 0; step < 3; ++step) {
    sgd.zero_grad();
    Tensor loss;
    for (int64_t i = 0; i < 2; ++i) {
      if (scale(i) == 0) continue;
      const Tensor part = parameters[static_cast<std::size_t>(i)].square().sum() * scale(i);
      loss = loss.defined() ? loss + part : part;
    }
    loss.backward();
    sgd.step();
  }
  if (parameters[2].grad().defined()) std::printf("a gradient that no rank has\n");
  print_state(group, *list);
}

// Several synchronized backwards before one step.
void twice(const ddprun::Group& group, bool as_view) {
  torch::manual_seed(1);
  Net net;
  ddprun::DistributedDataParallel ddp(net, group, {.gradient_as_bucket_view = as_view});
  torch::optim::SGD sgd(net.parameters(), 0.1);
  for (int step = 0; step < 5; ++step) {
    sgd.zero_grad(step % 2 == 0);
    for (int i = 0; i < 2; ++i) loss_of(net, part_of(group, inputs()), part_of(group, targets())).backward();
    sgd.step();
  }
  print_state(group, net);
}

void shared_memory_of_gradients(const ddprun::Group& group, bool as_view) {
  Net net;
  ddprun::DistributedDataParallel ddp(net, group, {.gradient_as_bucket_view = as_view});
  loss_of(net, inputs(), targets()).backward();
  const auto memory = [](const Tensor& parameter) { return parameter.grad().storage().data(); };
  std::printf("%s\n", memory(net.first->weight) == memory(net.second->weight) ? "one bucket" : "own memory");
}

// As a layer of a user whose backward fails.
struct Failing : torch::autograd::Function<Failing> {
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& input, bool fails) {
    context->saved_data["fails"] = fails;
    return input.clone();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    if (context->saved_data["fails"].toBool()) throw std::runtime_error("no gradient today");
    return {gradients[0], {}};
  }
};

// Between the buckets of the two layers: that of the second one has been started.
void backward_throws(const ddprun::Group& group, bool static_graph) {
  torch::manual_seed(1);
  Net net;
  ddprun::DistributedDataParallel ddp(net, group, {.bucket_cap_mb = 1e-4, .static_graph = static_graph});
  torch::optim::SGD sgd(net.parameters(), 0.1);
  for (int step = 0; step < 6; ++step) {
    sgd.zero_grad();
    const Tensor hidden = torch::relu(net.first->forward(part_of(group, inputs())));
    const Tensor output = net.second->forward(Failing::apply(hidden, step % 3 == 0));
    try {
      torch::nn::functional::cross_entropy(output, part_of(group, targets())).backward();
      sgd.step();
    } catch (const std::exception&) {
    }
  }
  print_state(group, net);
}

// Two backwards through one graph, with a BatchNorm whose buffers are broadcast between them.
void one_graph_twice(const ddprun::Group& group) {
  Net net(8, false, true);
  ddprun::DistributedDataParallel ddp(net, group);
  const Tensor hidden = net.norm->forward(net.first->forward(part_of(group, inputs())));
  const Tensor output = net.second->forward(hidden);
  output.sum().backward({}, true);
  output.square().sum().backward();
  std::printf("%s\n", net.first->weight.grad().isfinite().all().item<bool>() ? "finite" : "not finite");
}

// The bucket that is reduced first, in the second step.
void static_order(const ddprun::Group& group) {
  Net net;
  ddprun::DistributedDataParallel ddp(net, group, {.bucket_cap_mb = 1e-5, .static_graph = true});
  std::string first;
  ddp.register_comm_hook([&](ddprun::GradBucket& bucket, const ddprun::Group&) {
    if (bucket.index == 0) first = bucket.parameters[0].is_same(net.first->weight) ? "first layer" : "last layer";
  });
  for (int step = 0; step < 2; ++step) loss_of(net, inputs(), targets()).backward();
  std::printf("%s\n", first.c_str());
}

// A parameter that no rank used in the first step has a gradient on rank 0 in the second.
void static_changed(const ddprun::Group& group) {
  Net net(8, true);
  ddprun::DistributedDataParallel ddp(net, group, {.static_graph = true});
  loss_of(net, inputs(), targets()).backward();
  Tensor loss = loss_of(net, inputs(), targets());
  if (group.rank() == 0) loss = loss + net.unused->weight.sum();
  loss.backward();
}

void sparse(const ddprun::Group& group) {
  torch::nn::Embedding table(torch::nn::EmbeddingOptions(4, 2).sparse(true));
  ddprun::DistributedDataParallel ddp(*table, group);
  table->forward(torch::zeros({1}, torch::kInt64)).sum().backward();
}

}  // namespace

Acts graph_acts() {
  return {
      {"checkpoint_once", [](const auto& group) { checkpointed(group, 1, false); }},
      {"checkpoint_twice", [](const auto& group) { checkpointed(group, 2, false); }},
      {"checkpoint_static", [](const auto& group) { checkpointed(group, 2, true); }},
      {"encoder_decoder", [](const auto& group) { encoder_decoder(group, false); }},
      {"encoder_decoder_compressed", [](const auto& group) { encoder_decoder(group, true); }},
      {"unused_by_rank", [](const auto& group) { unused_by_rank(group, {.find_unused_parameters = true}); }},
      {"unused_static", [](const auto& group) { unused_by_rank(group, {.static_graph = true}); }},
      {"twice", [](const auto& group) { twice(group, true); }},
      {"twice_copied", [](const auto& group) { twice(group, false); }},
      {"views", [](const auto& group) { shared_memory_of_gradients(group, true); }},
      {"copies", [](const auto& group) { shared_memory_of_gradients(group, false); }},
      {"backward_throws", [](const auto& group) { backward_throws(group, false); }},
      {"backward_throws_static", [](const auto& group) { backward_throws(group, true); }},
      {"one_graph_twice", one_graph_twice},
      {"static_order", static_order},
      {"static_changed", static_changed},
      {"sparse", sparse},
  };
}

}  // namespace program
