from .layer import check_layer as check_layer, check_loss as check_loss
from .report import page as page
