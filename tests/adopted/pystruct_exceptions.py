"""PyStruct's tests and examples that do not pass on our classes, each with the reason."""

_ENERGY = "wants inference of MultiClassClf to return the score as its energy, not minus the score"
_SWITCH = (
    "wants switch_to to change the inference method of the model that was passed to the learner"
)
_AVERAGE = (
    "wants the last iterate in the order of the samples: ours is averaged and shuffled by default"
)
_SIZES = (
    "wants an error if n_states is larger than the number of labels in the data: ours allows that"
)
_SUBGRADIENT = "SubgradientLatentSSVM does not exist: use LatentSSVM(SubgradientSSVM(model))"
_LIBRARY = "imports a library in which PyStruct's inference is"
_LOOP = "has edges from a node to itself, which are refused"
_TYPED_BELIEFS = "wants potentials and beliefs as lists by type; ours are one array of all types"
_INITIALIZED = (
    "reads sizes from the model that was passed to the learner, which a fit does not change"
)

TESTS: dict[str, str] = {
    "test_binary_svm::test_break_ties": "wants class 1 where scores tie: ours is class -1",
    "test_crammer_singer_svm::test_crammer_singer_model": _ENERGY,
    "test_crammer_singer_svm::test_crammer_singer_model_class_weight": _ENERGY,
    "test_crammer_singer_svm::test_blobs_2d_subgradient": _AVERAGE,
    "test_crammer_singer_svm::test_class_weights_rescale_C": "rescale_C does not exist",
    "test_datasets::test_dataset_loading": "the data files of scenes and letters are not supplied",
    "test_edge_feature_graph_crf::test_initialization": _SIZES,
    "test_graph_crf::test_initialize": _SIZES,
    "test_latent_node_crf_learning::test_latent_node_boxes_latent_subgradient": _SUBGRADIENT,
    "test_latent_svm::test_with_crosses_base_svms": _AVERAGE,
    "test_latent_svm::test_switch_to_ad3": _SWITCH,
    "test_libraries::test_pyqpbo": _LIBRARY,
    "test_libraries::test_ad3": _LIBRARY,
    "test_libraries::test_ad3plus": _LIBRARY,
    "test_n_slack_ssvm::test_switch_to_ad3": _SWITCH,
    "test_node_type_edge_feature_graph_crf::test_checks": (
        "wants errors from the constructor: ours come with the first use, as in scikit-learn"
    ),
    "test_node_type_edge_feature_graph_crf::test_joint_feature": _LOOP,
    "test_one_slack_ssvm::test_constraint_removal": "constraints_ does not exist",
    "test_one_slack_ssvm::test_one_slack_constraint_caching": "inference_cache_ does not exist",
    "test_one_slack_ssvm::test_one_slack_repellent_potentials": "",
    "test_one_slack_ssvm::test_switch_to_ad3": _SWITCH,
    "test_perceptron::test_binary_blocks": _AVERAGE,
    "test_perceptron::test_xor": _AVERAGE,
    "test_perceptron::test_partial_averaging": "a number of passes as average does not exist",
    "test_perceptron::test_averaging_early_stopping": "the same",
    "test_perceptron::test_averaged": _AVERAGE,
    "test_structured_perceptron::test_binary_blocks_perceptron_online": _AVERAGE,
    "test_subgradient_latent_svm::test_objective": _SUBGRADIENT,
    "test_subgradient_latent_svm::test_directional_bars": _SUBGRADIENT,
    "test_subgradient_svm::test_multinomial_blocks_subgradient": _AVERAGE,
    "test_subgradient_svm::test_binary_blocks": _AVERAGE,
    "test_subgradient_svm::test_subgradient_svm_as_crf_pickling": _AVERAGE,
    "test_subgradient_svm::test_multinomial_blocks_subgradient_batch": _AVERAGE,
    "test_utils_inference::test_ssvm_objectives": _INITIALIZED,
}
