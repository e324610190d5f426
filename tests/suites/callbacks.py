"""A callback for tests of fits."""


class Recorder:
    """A callback that notes what it is told, and asks to stop when it is told to."""

    def __init__(self, stop=lambda context: False):
        self.stop = stop
        self.begun, self.ended, self.hooks, self.fitted = [], [], [], []

    def setup(self, estimator, context):
        self.hooks.append("setup")

    def teardown(self, estimator, context):
        self.hooks.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.begun.append((context.task_name, context.task_id))

    def on_fit_task_end(self, estimator, context, *, X, y, fitted_estimator):
        self.ended.append((context.task_name, context.task_id))
        if fitted_estimator is not None:
            self.fitted.append(fitted_estimator.score(X, y))
        return self.stop(context)
