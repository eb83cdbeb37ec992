"""Questions about images: readers of VQA-v2's files, predictions, pictures of where models look.

``python -m fairseq_regattn.vqa COMMAND``; the task is ``vqa``, the model ``regattn_vqa``.
"""
