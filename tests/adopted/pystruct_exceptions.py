"""PyStruct's tests and examples that do not pass on our classes, each with the reason."""

_NOISY = "wants no wrong label after a few passes of subgradient descent: some are wrong"
_ENERGY = "wants minus the energy as the energy of MultiClassClf"
_SWITCH = "wants switch_to to change the model that was passed to the learner"
_SIZES = "wants an error where n_states is larger than the number of labels in the data"
_SUBGRADIENT = "SubgradientLatentSSVM does not exist: use LatentSSVM(SubgradientSSVM(model))"
_LIBRARY = "imports a library of inference that is not used here"
_BY_TYPE = "wants potentials and beliefs as lists by type: ours are one array of all types"
_OPTIMUM = "wants 0 for weights that must not be positive: at the optimum they are negative"
_BY_TYPE_TOO = "sets tol=0, and has logical constraints as lists by type of node"
_NO_DATA = "needs data that are not part of its source, or that the copy does not have"

TESTS: dict[str, str] = {
    "test_crammer_singer_svm::test_crammer_singer_model": _ENERGY,
    "test_crammer_singer_svm::test_crammer_singer_model_class_weight": _ENERGY,
    "test_crammer_singer_svm::test_class_weights_rescale_C": (
        "rescale_C is refused: sample_weight=class_weight[y] replaces it"
    ),
    "test_edge_feature_graph_crf::test_initialization": _SIZES,
    "test_graph_crf::test_initialize": _SIZES,
    "test_latent_node_crf_learning::test_latent_node_boxes_latent_subgradient": _SUBGRADIENT,
    "test_latent_node_crf_learning::test_latent_node_boxes_standard_latent_features": _NOISY,
    "test_latent_svm::test_with_crosses_base_svms": _NOISY,
    "test_latent_svm::test_switch_to_ad3": _SWITCH,
    "test_libraries::test_pyqpbo": _LIBRARY,
    "test_libraries::test_ad3": _LIBRARY,
    "test_libraries::test_ad3plus": _LIBRARY,
    "test_n_slack_ssvm::test_switch_to_ad3": _SWITCH,
    "test_n_slack_ssvm::test_binary_ssvm_repellent_potentials": _OPTIMUM,
    "test_node_type_edge_feature_graph_crf::test_checks": (
        "wants errors from the constructor: ours come with the first use, as in scikit-learn"
    ),
    "test_node_type_edge_feature_graph_crf::test_joint_feature": (
        "has an edge from a node to itself, which is refused"
    ),
    "test_node_type_edge_feature_graph_crf::test_joint_feature3": _BY_TYPE,
    "test_node_type_edge_feature_graph_crf::test_unary_potentials": _BY_TYPE,
    "test_node_type_edge_feature_graph_crf::test_inference_ad3plus": _BY_TYPE,
    "test_node_type_edge_feature_graph_crf::test_inference_ad3": _BY_TYPE,
    "test_node_type_edge_feature_graph_crf::test_energy_discrete": _BY_TYPE,
    "test_one_slack_ssvm::test_constraint_removal": "constraints_ does not exist",
    "test_one_slack_ssvm::test_one_slack_constraint_caching": "inference_cache_ does not exist",
    "test_one_slack_ssvm::test_one_slack_repellent_potentials": _OPTIMUM,
    "test_one_slack_ssvm::test_switch_to_ad3": _SWITCH,
    "test_perceptron::test_averaging_early_stopping": (
        "wants weights of zero if training ends before the first pass that is averaged"
    ),
    "test_perceptron::test_overflow_averaged": (
        "averages weights near the largest number: ours are added first, and overflow"
    ),
    "test_subgradient_latent_svm::test_objective": _SUBGRADIENT,
    "test_subgradient_latent_svm::test_directional_bars": _SUBGRADIENT,
    "test_subgradient_svm::test_binary_blocks": _NOISY,
}

EXAMPLES: dict[str, str] = {
    "image_segmentation": _NO_DATA,
    "plot_hidden_short_snakes_typed": _BY_TYPE_TOO,
    "plot_hidden_short_snakes_typed_gen": _BY_TYPE_TOO,
    "plot_snakes_constraints": "is Python 2",
}

# Examples for Python 2, where ``/`` divides integers, or an early Matplotlib.
TRANSLATED = ("plot_latent_node", "plot_letters")
