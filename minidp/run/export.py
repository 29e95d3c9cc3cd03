"""A model as an ONNX file, which many programs run without minidp."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..backend import to_host
from ..errors import ParameterError
from ..util.atomic import StrPath, atomic_write
from ..util.notices import say
from ..util.text import listed
from .layer_names import class_name

OPSET = 18
WIDE = np.dtype("float64")  # dtype of the file's outputs
LABELS = {"U": object, "b": bool, "i": np.int64, "u": np.uint64, "f": np.float64}  # of classes
AXIS = np.array([2])


class Graph:
    """Nodes of an ONNX graph; every tensor has a name."""

    def __init__(self) -> None:
        import onnx  # of the extra `onnx`

        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def node(self, operator: str, *inputs: Any, name: str | None = None, **attributes: Any) -> str:
        """Add a node; inputs are names, or arrays, which become constants. Returns its output."""
        name = name or f"{operator.lower()}{len(self.nodes)}"
        given = [each if isinstance(each, str) else self._constant(each) for each in inputs]
        self.nodes.append(self.onnx.helper.make_node(operator, given, [name], **attributes))
        return name

    def _constant(self, value):
        name = f"constant{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def cast(self, x: str, kind: str) -> str:
        """x as numbers of another kind, such as DOUBLE."""
        return self.node("Cast", x, to=getattr(self.onnx.TensorProto, kind))


def _numbers(value):
    return to_host(value).astype(np.float32)


def _dense(graph, layer, x, shape):
    y = graph.node("MatMul", x, _numbers(layer.params["W"]))
    return graph.node("Add", y, _numbers(layer.params["b"])) if layer.bias else y


def _project(graph, layer, x, shape):
    return graph.node("MatMul", x, _numbers(layer.constants["P"]))


def _windows(graph, layer, x, shape, operator, *more, **attributes):
    """Add an operator on images, between transposes to and from ONNX's order, which has channels
    first.
    """
    (top, bottom), (left, right) = layer.window.around((1, *shape))
    x = graph.node("Transpose", x, perm=[0, 3, 1, 2])
    y = graph.node(
        operator,
        x,
        *more,
        kernel_shape=layer.window.size,
        strides=layer.window.stride,
        pads=[top, left, bottom, right],
        **attributes,
    )
    return graph.node("Transpose", y, perm=[0, 2, 3, 1])


def _conv(graph, layer, x, shape):
    kernels = _numbers(layer.params["W"]).transpose(3, 2, 0, 1)
    bias = [_numbers(layer.params["b"])] if "b" in layer.params else []
    return _windows(graph, layer, x, shape, "Conv", kernels, *bias)


def _norm(graph, layer, x, shape):
    """GroupNorm and LayerNorm by their definition."""
    view = layer.view((1, *shape))[1:]
    axes = np.array(layer.axes)
    v = graph.node("Reshape", x, np.array([-1, *view]))
    centred = graph.node("Sub", v, graph.node("ReduceMean", v, axes))
    variance = graph.node("ReduceMean", graph.node("Mul", centred, centred), axes)
    spread = graph.node("Sqrt", graph.node("Add", variance, np.float32(layer.epsilon)))
    n = graph.node("Div", centred, spread)
    scale, shift = (_numbers(layer.params[name]).reshape(view[1:]) for name in ("scale", "shift"))
    y = graph.node("Add", graph.node("Mul", n, scale), shift)
    return graph.node("Reshape", y, np.array([-1, *shape]))


def _unit_norm(graph, layer, x, shape):
    axes = np.arange(1, 1 + len(shape))
    largest = graph.node("ReduceMax", graph.node("Abs", x), axes)
    zero = graph.cast(graph.node("Equal", largest, np.float32(0)), "FLOAT")
    scaled = graph.node("Div", x, graph.node("Add", largest, zero))
    squares = graph.node("ReduceSum", graph.node("Mul", scaled, scaled), axes)
    return graph.node("Div", scaled, graph.node("Sqrt", graph.node("Add", squares, zero)))


def _standardise(graph, layer, x, shape):
    if layer.gives is None:
        centred = graph.node("Sub", x, _numbers(layer.constants["mean"]))
        return graph.node("Div", centred, _numbers(layer.constants["scale"]))
    mean, scale = (to_host(layer.constants[name]).astype(WIDE) for name in ("mean", "scale"))
    wide = graph.node("Div", graph.node("Sub", graph.cast(x, "DOUBLE"), mean), scale)
    return graph.cast(wide, "FLOAT")


def _pieces(graph, layer, x, shape):
    before, knots, after = map(_numbers, layer.around())
    v = graph.node("Unsqueeze", graph.node("Gather", x, np.array(layer.columns), axis=1), AXIS)
    v = graph.node("Min", graph.node("Max", v, knots[:, :1]), knots[:, -1:])
    rising = graph.node("Div", graph.node("Sub", v, before), knots - before)
    falling = graph.node("Div", graph.node("Sub", after, v), after - knots)
    near = graph.node("Max", graph.node("Min", rising, falling), np.float32(0))
    near = graph.node("Mul", near, np.float32(layer.weight))
    return graph.node("Concat", x, graph.node("Flatten", near), axis=1)


# what a layer adds to the graph: (graph, layer, name of its input, shape of one example) -> name
LAYERS: dict[str, Callable[..., str]] = {
    "nn.Dense": _dense,
    "nn.Project": lambda graph, layer, x, _: graph.node(
        "MatMul", x, _numbers(layer.constants["P"])
    ),
    "nn.Conv2D": _conv,
    "nn.MaxPool2D": lambda *given: _windows(*given, "MaxPool"),
    "nn.AvgPool2D": lambda *given: _windows(*given, "AveragePool"),
    "nn.GroupNorm": _norm,
    "nn.LayerNorm": _norm,
    "nn.UnitNorm": _unit_norm,
    "nn.Standardise": _standardise,
    "nn.Pieces": _pieces,
    "nn.Flatten": lambda graph, layer, x, _: graph.node("Flatten", x),
    "nn.Dropout": lambda graph, layer, x, _: x,
    "nn.ReLU": lambda graph, layer, x, _: graph.node("Relu", x),
    "nn.Tanh": lambda graph, layer, x, _: graph.node("Tanh", x),
    "nn.Sigmoid": lambda graph, layer, x, _: graph.node("Sigmoid", x),
    "nn.Softmax": lambda graph, layer, x, _: graph.node("Softmax", x, axis=-1),
    "nn.Clamp": lambda graph, layer, x, _: graph.node(
        "Clip", x, np.float32(-layer.limit), np.float32(layer.limit)
    ),
}


def export(model: Any, path: StrPath) -> None:
    """Write a model as an ONNX file (opset 18).

    The input is x (N, *input_shape); images have pixels from 0 to 1. x is float64 if the first
    layer is a Standardise with `gives`, as in a fit with bounds or a look at the columns, because
    numbers may lie far from 0. That layer computes in float64, other layers in float32. Otherwise
    (unit-norm, most networks of your own) x is float32, and a printed line says so. The outputs are
    label (N,) and probabilities (N, K) for a model with classes, prediction (N,) for one with
    target bounds, and outputs for any other. Needs the extra `onnx`. Raises ParameterError for
    layers without a translation, and for a model that takes tables by a schema.

    Source
        ONNX operators, https://onnx.ai/onnx/operators/
    """
    if model.schema is not None:
        raise ParameterError(
            "expected a model of numbers to export, got one with a schema: texts, dates and gaps "
            "of a table are encoded by minidp; export Model(model.network, model.classes, "
            "model.target_bounds), and give it what model.schema.encode(table) returns"
        )
    refused = [each.name for each in model.network.layers if class_name(type(each)) not in LAYERS]
    if refused:
        known = listed([each.removeprefix("nn.") for each in LAYERS])
        raise ParameterError(
            f"expected a network of {known} to export, got {listed(refused)}: write these for ONNX "
            "by hand"
        )
    graph = Graph()
    x, shape = "x", model.network.input_shape
    for layer in model.network.layers:
        x, shape = LAYERS[class_name(type(layer))](graph, layer, x, shape), layer.shape_of_y(shape)
    # only the first layer may compute with more digits than the others
    wide = any(getattr(each, "gives", None) for each in model.network.layers[:1])
    with atomic_write(path, "wb") as file:
        file.write(_file(graph, model, _outputs(graph, model, x), wide).SerializeToString())
    if not wide:
        say(f"{path} takes x as float32, 7 digits: first centre columns of large numbers, if any")


def _outputs(graph, model, z):
    """{name: (dtype, shape)} of the file's outputs, computed in float64."""
    wide = graph.cast(z, "DOUBLE")
    if model.classes is not None:
        graph.node("Softmax", wide, name="probabilities", axis=-1)
        classes = model.classes.astype(LABELS[model.classes.dtype.kind])
        found = graph.node("ArgMax", z, axis=1, keepdims=0)
        graph.node("Gather", classes, found, name="label")
        return {"label": (classes.dtype, ["N"]), "probabilities": (WIDE, ["N", len(classes)])}
    if model.target_bounds is None:
        graph.node("Identity", wide, name="outputs")
        return {"outputs": (WIDE, ["N", *model.network.output_shape])}
    low, high = map(np.float64, model.target_bounds)
    share = graph.node("Div", graph.node("Add", wide, np.float64(1)), np.float64(2))
    target = graph.node("Add", graph.node("Mul", share, high - low), low)
    clipped = graph.node("Clip", target, low, high)
    graph.node("Squeeze", clipped, np.array([1]), name="prediction")
    return {"prediction": (WIDE, ["N"])}


def _file(graph, model, outputs, wide):
    """The checked ONNX model, which takes float64 if `wide`."""
    helper, kinds = graph.onnx.helper, graph.onnx.TensorProto
    kind = kinds.DOUBLE if wide else kinds.FLOAT
    given = helper.make_tensor_value_info("x", kind, ["N", *model.network.input_shape])
    found = []
    for name, (kind, shape) in outputs.items():
        kind = helper.np_dtype_to_tensor_dtype(kind)
        found.append(helper.make_tensor_value_info(name, kind, shape))
    made = helper.make_model(
        helper.make_graph(graph.nodes, "minidp", [given], found, graph.constants),
        producer_name="minidp",
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=9,
    )
    if model.ledger_sha256 is not None:
        helper.set_model_props(made, {"ledger_sha256": model.ledger_sha256})
    graph.onnx.checker.check_model(made, full_check=True)
    return made
