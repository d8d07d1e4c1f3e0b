"""A model in ONNX Runtime with 8-bit weights: exported by torch, quantised per channel, run as an embedder."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kgrag_assets.models.distinct import embed_distinct
from kgrag_assets.models.embedders import EmbedProgress
from kgrag_assets.models.model_folder import find_model, fingerprint, forbid_downloads
from kgrag_assets.models.static_files import read_tokenizer

MAX_TOKENS = 256


def export(model: str, folder: Path) -> Path:
    """Export a BERT-like model with mean pooling and unit length, quantised to 8 bits; return the file."""
    forbid_downloads()
    import torch
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from transformers import AutoModel

    plain, quantised = folder / "float32.onnx", folder / "int8.onnx"
    if quantised.is_file():
        return quantised
    folder.mkdir(parents=True, exist_ok=True)
    source: Any = AutoModel.from_pretrained(str(find_model(model).path), attn_implementation="eager").eval()

    class Pooled(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.source = source

        def forward(self, input_ids: Any, attention_mask: Any) -> Any:  # noqa: ANN401 - torch ships no types here
            # The library's own mask code does not trace: the mask that attention adds is written out.
            added = (1.0 - attention_mask[:, None, None, :].to(torch.float32)) * -1e4
            hidden = self.source.encoder(self.source.embeddings(input_ids=input_ids), attention_mask=added)[0]
            shown = attention_mask[:, :, None].to(hidden.dtype)
            mean = (hidden * shown).sum(1) / shown.sum(1)
            return mean / torch.sqrt((mean * mean).sum(1, keepdim=True))

    example = torch.randint(1000, 2000, (2, 9))
    axes = {0: "texts", 1: "tokens"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            Pooled().eval(),
            (example, torch.ones_like(example)),
            str(plain),
            input_names=["input_ids", "attention_mask"],
            output_names=["vectors"],
            dynamic_axes={"input_ids": axes, "attention_mask": axes, "vectors": {0: "texts"}},
            opset_version=17,
            dynamo=False,
        )
    quantize_dynamic(str(plain), str(quantised), per_channel=True, weight_type=QuantType.QInt8)
    return quantised


class OnnxEmbedder:
    """An exported model behind the same protocol as the product's embedders."""

    def __init__(self, model: str, file: Path, batch_size: int = 64) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = len(os.sched_getaffinity(0))
        # Spinning threads take the cores from whoever else works on the machine.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        folder = find_model(model)
        self._session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
        self._tokenizer = read_tokenizer(folder.path)
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._tokenizer.enable_padding()
        self._batch_size = batch_size
        self.model_id = f"onnx-int8/{folder.name}@{fingerprint(folder.path)}"
        self.dimension = int(self._session.get_outputs()[0].shape[1])

    def embed(self, texts: Sequence[str], progress: EmbedProgress | None = None) -> np.ndarray:
        """Embed texts."""

        def embed_batch(batch: list[str]) -> np.ndarray:
            cut = self._tokenizer.encode_batch_fast(batch)
            ids = np.array([one.ids for one in cut], dtype=np.int64)
            mask = np.array([one.attention_mask for one in cut], dtype=np.int64)
            return np.asarray(self._session.run(None, {"input_ids": ids, "attention_mask": mask})[0])

        return embed_distinct(
            texts, embed_batch, batch_size=self._batch_size, dimension=self.dimension, who="ONNX", progress=progress
        )
